"""Certificates of an authority that lives as long as a test."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from twopc.rpc.tls import TlsFiles

DAY = timedelta(days=1)
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def role(uri: bytes) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(uri.decode())


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """Signs what it is asked to."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        basic = x509.BasicConstraints(ca=True, path_length=0)
        certificate = _builder(self._name, self._name, self._key.public_key(), DAY)
        signed = certificate.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *names: x509.GeneralName, ends_in: timedelta = DAY) -> Identity:
        """A certificate for these alternative names; with a negative `ends_in`, one that has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = _builder(subject, self._name, key.public_key(), ends_in)
        certificate = certificate.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = certificate.sign(self._key, hashes.SHA256())
        issued = Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        issued.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return issued

    def trusted_by(self, identity: Identity | None = None) -> TlsFiles:
        """What one needs who trusts this authority, and is `identity`."""
        if identity is None:
            return TlsFiles(str(self.file))
        return TlsFiles(str(self.file), str(identity.cert), str(identity.key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, ends_in: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 3 * DAY)
        .not_valid_after(now + ends_in)
    )
