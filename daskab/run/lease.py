"""One writer a run: a file lock on a disk; on object storage a lease, which runs out when its holder is gone.

A lease is an object that is only ever written on condition that it still is what was read before. It is judged by the
storage's own clock; a holder that cannot renew it stops by itself.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from daskab.errors import BusyError
from daskab.files import make_folder, on_s3, reaching, s3

RENEWAL = 30.0
EXPIRY = 180.0
"""Seconds from one renewal of a lease to the next, and from the last until another may take it."""

ABSENT = {"IfNoneMatch": "*"}
NEVER = ABSENT, {"IfMatch": '"none"'}
"""Conditions that an object which is there does not meet."""

LOCK, LEASE = ".lock", ".lease"


@contextmanager
def one_writer(folder: Path, what: str = "run") -> Iterator[Callable[[], None]]:
    """Hold a run, or ``what`` else is in a folder, or raise BusyError if another process does.

    What is yielded raises it once the hold is lost.
    """
    if on_s3(folder):
        lease = Lease(folder, what)
        try:
            with reaching(folder):
                lease.take()
            yield lease.check
        finally:
            lease.release()
        return
    make_folder(folder)
    try:
        with FileLock(str(folder / LOCK), timeout=0):
            yield lambda: None
    except Timeout:
        raise BusyError(f"{folder}: another process is working on this {what}; wait for it or stop it") from None


def held(folder: Path) -> bool:
    """Whether a process holds a run."""
    try:
        if on_s3(folder):
            seen = Lease(folder).look()
            return seen is not None and seen.left > 0
        if not (folder / LOCK).exists():
            return False
        with FileLock(str(folder / LOCK), timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # not ours to write, so not ours to lock
        return False


class Seen(NamedTuple):
    """A lease as it was found."""

    etag: str
    owner: str
    who: str  #: host and process, for people
    left: float  #: seconds until it runs out


class Lease:
    """Of a run on object storage; renewed by a thread of its own while it is held."""

    def __init__(self, folder: Path, what: str = "run") -> None:
        self.folder = folder
        self.what = what
        self._fs, name = s3(folder / LEASE)
        self._at = dict(zip(("Bucket", "Key"), self._fs.split_path(name), strict=False))
        self._owner = uuid.uuid4().hex
        self._etag: str | None = None  # None when it is not ours
        self._renewed = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="daskab-lease", daemon=True)

    def look(self) -> Seen | None:
        """The lease as it is there; None where there is none."""
        try:
            said = self._fs.call_s3("head_object", **self._at)
        except FileNotFoundError:
            return None
        now = parsedate_to_datetime(said["ResponseMetadata"]["HTTPHeaders"]["date"])
        age = (now - said["LastModified"]).total_seconds()
        about = said["Metadata"]
        left = EXPIRY - age if said["ContentLength"] else 0.0
        return Seen(said["ETag"], about.get("owner", ""), about.get("who", "unknown"), left)

    def take(self) -> None:
        """Take the lease and begin to renew it.

        Raises
        ------
        BusyError
            If another process holds it.
        OSError
            If the storage cannot be reached, or heeds no conditions.
        """
        seen = self.look()
        if seen is not None and seen.left > 0:
            raise BusyError(
                f"{self.folder}: {seen.who} is working on this {self.what}; wait for it or stop it "
                f"(if it was killed, its lease runs out in {seen.left:.0f} s)"
            )
        if not self._claim(ABSENT if seen is None else {"IfMatch": seen.etag}):
            raise BusyError(f"{self.folder}: another process took this {self.what} just now; wait for it or stop it")
        # Storage that heeds no conditions lets two writers in.
        if any(self._put(condition) for condition in NEVER):
            raise OSError(f"{self.folder}: this storage ignores If-None-Match or If-Match; it cannot hold runs")
        self._thread.start()

    def check(self) -> None:
        """Raise BusyError once the lease is lost, or might be."""
        if self._etag is None or time.monotonic() - self._renewed > EXPIRY:
            raise BusyError(
                f"{self.folder}: the lease of this {self.what} could not be renewed; the same command goes on"
            )

    def renew(self) -> None:
        """Put off when the lease runs out; if another has taken it, it is lost."""
        if self._etag is not None and not self._claim({"IfMatch": self._etag}):
            self._etag = None

    def release(self) -> None:
        """Let another take it at once."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._etag is not None:
            with suppress(OSError), reaching(self.folder):  # it will run out
                self._put({"IfMatch": self._etag}, body=b"")

    def _keep(self) -> None:
        while not self._stop.wait(RENEWAL):
            with suppress(OSError), reaching(self.folder):  # if it goes on failing, `check` tells
                self.renew()

    def _claim(self, condition: dict[str, str]) -> bool:
        """Write the lease on a condition; whether it is ours then."""
        if self._put(condition):
            return True
        # The answer to a try that succeeded may have been lost, and the next was refused.
        seen = self.look()
        if seen is None or seen.owner != self._owner:
            return False
        self._etag, self._renewed = seen.etag, time.monotonic() - (EXPIRY - seen.left)
        return True

    def _put(self, condition: dict[str, str], body: bytes | None = None) -> bool:
        """Write the lease anew; False if the condition was not met. Without a body it is free."""
        begun = time.monotonic()
        who = f"process {os.getpid()} on {platform.node()}".encode("ascii", "replace").decode()
        about = {"owner": self._owner, "who": who}
        body = uuid.uuid4().hex.encode() if body is None else body  # another each time, for another ETag
        try:
            said = self._fs.call_s3("put_object", **self._at, Body=body, Metadata=about, **condition)
        except OSError as error:
            if code_of(error) in ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"):
                return False
            raise
        self._etag, self._renewed = said["ETag"], begun
        return True


def code_of(error: OSError) -> Any:
    """What S3 calls an error."""
    return getattr(error.__cause__, "response", {}).get("Error", {}).get("Code")
