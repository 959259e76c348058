"""The authority of one bed, and the certificate that its servers show."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


def write_certificates(folder: Path, name: str = "bed") -> None:
    """Write `NAME-ca.crt`, and `NAME.crt` with `NAME.key` for the loopback, signed by it."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign(f"{name} authority", authority_key, None, authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    shown = _sign(name, key, authority, authority_key)
    (folder / f"{name}-ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.crt").write_bytes(shown.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def write_client_certificate(folder: Path, name: str, organisation: str) -> None:
    """Write an authority `NAME-ca.crt` and `NAME.crt` with `NAME.key`, by which NAME can log in."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign(f"{name} authority", authority_key, None, authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    shown = _sign(name, key, authority, authority_key, organisation)
    (folder / f"{name}-ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.crt").write_bytes(shown.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def _sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    organisation: str = "",
) -> x509.Certificate:
    """A certificate for a day or so; without an issuer it is an authority."""
    now = datetime.datetime.now(datetime.UTC)
    named = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organisation:
        named.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    subject = x509.Name(named)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if issuer is None:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(usage, critical=True)
    else:
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = x509.SubjectAlternativeName([loopback, x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())
