"""Downloads by Ivy, the resolver inside Spark, without starting Spark.

Ivy uses the public repository; a settings file named by `SLUICE_IVY_SETTINGS` sends it to another.
Only the requested artifacts are fetched, never their dependencies. If Java does not trust the
server, Ivy tries again with the certificates of the environment (`SSL_CERT_FILE`, `PIP_CERT`) or of
the system. A wheel's Java has no local certificates.
"""

import os
import secrets
import ssl
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from sluice.errors import MissingDependency
from sluice.spark.java import java_home

MODULE = """<ivy-module version="2.0">
  <info organisation="sluice" module="jars"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="*->master"/>'
TIMEOUT_S = 300


class FetchFailed(Exception):
    """Failed download, with Ivy's last words."""


def fetch(
    artifacts: Sequence[tuple[str, str, str]], folder: Path, environ: Mapping[str, str] = os.environ
) -> None:
    """Put each (organisation, name, version) into `folder` as `name-version.jar`."""
    module = folder / "ivy.xml"
    dependencies = "".join(DEPENDENCY.format(*artifact) for artifact in artifacts)
    module.write_text(MODULE.format(dependencies=dependencies), "utf-8")
    settings = environ.get("SLUICE_IVY_SETTINGS")
    java = str(java_home(environ) / "bin" / "java")
    command = [
        "-cp", os.pathsep.join(_classpath()), "org.apache.ivy.Main",
        *(["-settings", settings] if settings else []),
        "-ivy", str(module), "-cache", str(folder / "ivy"),
        "-retrieve", f"{folder}/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    try:
        _run([java, *command])
    except FetchFailed as failure:
        if "SSLHandshakeException" not in str(failure):
            raise
        _run([java, *_trust(folder, environ), *command])


def _run(command: list[str]) -> None:
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise FetchFailed(f"no answer within {TIMEOUT_S} s") from late
    if run.returncode:
        raise FetchFailed(_reason(run.stdout + run.stderr))


def _reason(said: str) -> str:
    """Return the first problem that Ivy reports; it repeats them all under several headings."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and "::" not in line]
    problems = (line for line in lines if "error" in line.lower())
    return next(problems, lines[-1] if lines else "Ivy said nothing")


def _trust(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Return Java's options for the certificates that the rest of the machine trusts."""
    system = ssl.get_default_verify_paths().cafile
    bundle = environ.get("SSL_CERT_FILE") or environ.get("PIP_CERT") or system
    if not bundle:
        return []
    password = secrets.token_hex(16)
    store = folder / "trust.p12"
    store.write_bytes(_truststore(Path(bundle).read_bytes(), password))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={password}"]


def _truststore(bundle: bytes, password: str) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unusual but trusted certificates
        loaded = x509.load_pem_x509_certificates(bundle)
    certificates = [pkcs12.PKCS12Certificate(certificate, None) for certificate in loaded]
    return pkcs12.serialize_java_truststore(
        certificates, BestAvailableEncryption(password.encode())
    )


def _classpath() -> list[str]:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise MissingDependency("pyspark is not installed", hint='run "make setup"')
    jars = Path(spark.origin).parent / "jars"
    return [str(jar) for name in ("ivy-2*", "commons-cli-*") for jar in jars.glob(f"{name}.jar")]
