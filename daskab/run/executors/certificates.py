"""Certificates for a cluster over TLS: an authority made for the occasion, which signs one for every part."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from daskab.errors import ClusterError

PARTS = ("scheduler", "worker", "client")
SLACK = timedelta(minutes=5)
"""Clocks of several machines differ."""


def make_certificates(folder: Path, hosts: Sequence[str], days: int) -> None:
    """Write ``ca.pem``, and ``PART.pem`` and ``PART-key.pem`` of scheduler, worker and client.

    Whoever holds one of the keys can join the cluster. The authority's own key is kept nowhere, so that nobody can
    sign another; when certificates run out, new ones are made of all.

    Parameters
    ----------
    folder : made if need be; keys in it can be read by their owner only
    hosts : names and addresses that scheduler and workers are reached at
    days : until the certificates run out

    Raises
    ------
    ClusterError
        If there are certificates in the folder already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca.pem", *(f"{part}{end}" for part in PARTS for end in (".pem", "-key.pem"))):
        if (folder / name).exists():
            raise ClusterError(f"{folder / name}: is there already; remove the old certificates or name another folder")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    (folder / "ca.pem").write_bytes(authority(authority_key, days).public_bytes(Encoding.PEM))
    for part in PARTS:
        key = ec.generate_private_key(ec.SECP256R1())
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with open(os.open(folder / f"{part}-key.pem", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(text)
        certificate = signed(part, key.public_key(), authority_key, hosts, days)
        (folder / f"{part}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))


def authority(key: ec.EllipticCurvePrivateKey, days: int) -> x509.Certificate:
    """The certificate of who signs the others."""
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # signs certificates, no more
    return (
        begun("authority", key.public_key(), key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )


def signed(
    part: str,
    public_key: ec.EllipticCurvePublicKey,
    authority_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    days: int,
) -> x509.Certificate:
    """The certificate of a part of the cluster, each of which both calls others and is called."""
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        begun(part, public_key, authority_key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(x509.SubjectAlternativeName([general_name(host) for host in hosts]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def begun(
    name: str, public_key: ec.EllipticCurvePublicKey, authority_key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    """What all certificates have."""
    now = datetime.now(UTC)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(common_name(name))
        .issuer_name(common_name("authority"))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(issuer, critical=False)
    )


def common_name(name: str) -> x509.Name:
    """The name of a part of the cluster."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"daskab {name}")])


def general_name(host: str) -> x509.GeneralName:
    """A host by name or address."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
