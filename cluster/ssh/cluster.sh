#!/bin/sh
# A Dask cluster over TLS: a scheduler here, and a worker a core on each host, begun over ssh. Ctrl-C ends all of it.
# Usage: cluster.sh ADDRESS HOST...   ADDRESS is this machine's, as the hosts reach it.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 ADDRESS HOST..." >&2
    exit 2
fi
: "${SSH:=ssh}" "${PORT:=8786}" "${DASK:=$PWD/.venv/bin/dask}" "${CERTIFICATES:=$PWD/certificates}"
address=$1
shift
if [ ! -f "$CERTIFICATES/ca.pem" ]; then
    "$(dirname "$DASK")/daskab" certificates "$CERTIFICATES" --host "$address" >/dev/null
fi

tls() {
    echo "--tls-ca-file '$CERTIFICATES/ca.pem' --tls-cert '$CERTIFICATES/$1.pem' --tls-key '$CERTIFICATES/$1-key.pem'"
}

# A host's workers, again when they end. The terminal (-tt) is what makes them end with the connection.
workers() {
    trap 'kill $ssh 2>/dev/null; exit' TERM
    while :; do
        $SSH -tt -o BatchMode=yes -o ServerAliveInterval=15 "$1" "cd '$PWD' && exec '$DASK' worker \
            tls://$address:$PORT --nworkers=-1 --nthreads 1 --dashboard-address 127.0.0.1:0 $(tls worker)" \
            </dev/null >"$1.log" 2>&1 &
        ssh=$!
        wait $ssh || true
        sleep 5 & # a trap waits for a command to end, but not for `wait`
        ssh=$!
        wait $ssh
    done
}

begun=
trap 'kill $begun 2>/dev/null; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
eval "exec '$DASK' scheduler --protocol tls --host $address --port $PORT --dashboard-address 127.0.0.1:8787 $(tls scheduler)" \
    >scheduler.log 2>&1 &
scheduler=$!
begun=$scheduler
for host; do
    workers "$host" &
    begun="$begun $!"
done
echo "scheduler at tls://$address:$PORT, workers on $*; see scheduler.log and HOST.log"
wait $scheduler
