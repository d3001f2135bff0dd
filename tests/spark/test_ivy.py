"""Fetching by Ivy, with a script for Java: what it is asked, what is made of its failures."""

import os
from pathlib import Path

import pytest

from sluice.spark import jars
from sluice.spark.jars import FetchFailed, retrieve

ARTIFACT = ("org.example", "thing", "1.0")
UNTRUSTED = "Server access error at url x (javax.net.ssl.SSLHandshakeException: PKIX)"


class Machine:
    """A Java that does what `script` says, and a folder to fetch into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "to"
        self.folder.mkdir()
        self.said = folder / "said"
        self.home = folder / "java"
        self.environ = {"JAVA_HOME": str(self.home)}

    def answers(self, script: str) -> "Machine":
        java = self.home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f'#!/bin/sh\necho "$@" >> {self.said}\n{script}\n')
        java.chmod(0o755)
        (self.home / "release").write_text('JAVA_VERSION="21.0.1"\n')
        return self

    def fetch(self, **environ: str) -> list[str]:
        retrieve([ARTIFACT], self.folder, self.environ | environ)
        return self.said.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_only_the_artifact_is_asked_for_by_the_resolver_inside_spark(machine: Machine):
    (command,) = machine.answers("exit 0").fetch()
    assert "org.apache.ivy.Main" in command
    assert "pyspark" in command
    module = (machine.folder / "ivy.xml").read_text()
    assert 'org="org.example" name="thing" rev="1.0" transitive="false"' in module


def test_no_repository_is_named_unless_a_settings_file_does(machine: Machine):
    (command,) = machine.answers("exit 0").fetch(SLUICE_IVY_SETTINGS="/etc/ivy.xml")
    assert "-settings /etc/ivy.xml" in command
    assert "http" not in command


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo ':: problems ::'; echo ' Server access error at x'; echo no; exit 1",
            "^Server access error at x$",
        ),
        ("exit 1", "Ivy said nothing"),
    ],
)
def test_failures_carry_ivys_first_reason(machine: Machine, script: str, said: str):
    with pytest.raises(FetchFailed, match=said):
        machine.answers(script).fetch()


def test_no_answer_is_a_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jars, "FETCH_TIMEOUT_S", 0.2)
    with pytest.raises(FetchFailed, match="no answer"):
        machine.answers("exec sleep 100000").fetch()


def test_strangers_are_met_with_certificates_of_the_environment(machine: Machine, tmp_path: Path):
    bundle = self_signed(tmp_path / "ca.pem")
    trusting = 'case "$*" in *trustStore=*) exit 0;; esac'
    machine.answers(f"{trusting}\necho '{UNTRUSTED}'; exit 1")
    first, second = machine.fetch(SSL_CERT_FILE=str(bundle))
    assert "trustStore" not in first
    assert second.startswith(f"-Djavax.net.ssl.trustStore={machine.folder}{os.sep}trust.p12")
    assert (machine.folder / "trust.p12").stat().st_size > 0


def self_signed(file: Path) -> Path:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a company's own")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return file
