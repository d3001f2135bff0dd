"""Certificates for a day: an authority of a test's own, and those that it issues for loopback."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Key = ec.EllipticCurvePrivateKey
NEW = serialization.NoEncryption()


def _key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True)
class Authority:
    """An authority, with its files in a folder."""

    folder: Path
    name: str = "authority"
    key: Key = field(default_factory=_key)

    @cached_property
    def certificate(self) -> Path:
        """The file of its own certificate, which clients trust."""
        path = self.folder / f"{self.name}.pem"
        path.write_text(self._signed(self.name, self.key, is_authority=True))
        return path

    def issue(self, name: str) -> Path:
        """Issue a certificate; the file has its key, too."""
        key, path = _key(), self.folder / f"{name}.pem"
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, NEW
        ).decode()
        path.write_text(text + self._signed(name, key))
        return path

    def _signed(self, name: str, key: Key, *, is_authority: bool = False) -> str:
        now, place = datetime.now(UTC), x509.IPAddress(ip_address("127.0.0.1"))
        made = (
            x509.CertificateBuilder(_named(self.name), _named(name), key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([place]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
