"""Delta's two jars, for the installed Spark, and the drivers: found, or fetched once.

`classpath` looks in `SLUICE_JARS`, in the cache folder and beside the package. If the jars are in
none of them, it fetches them into the cache. A jar is put in place only after its SHA-256 was
checked, so later only its size is checked. `python -m sluice.spark.jars [DRIVER...]` fetches
Delta's jars, and those of drivers, and prints their paths.

Only the jars themselves are fetched. Spark already contains their dependencies, in the versions
that it runs.

Downloads by Ivy, the resolver inside Spark, without starting Spark.

Ivy uses the public repository; a settings file named by `SLUICE_IVY_SETTINGS` sends it to another.
Only the requested artifacts are fetched, never their dependencies. If Java does not trust the
server, Ivy tries again with the certificates of the environment (`SSL_CERT_FILE`, `PIP_CERT`) or of
the system. A wheel's Java has no local certificates.

Hadoop's S3A and what it loads: the modules of Amazon's SDK, in the version that Hadoop names.

Amazon's own bundle of all its services has 600 MB; these jars have 13.

Sluice's own log store for Delta on S3, compiled once by the Scala compiler inside Spark.

The log stores in Delta's jar create files by a Hadoop call that S3A 3.5.0 never makes conditional.
This one asks for the condition by its name.
"""

import hashlib
import os
import secrets
import ssl
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from sluice.cache import cache_folder
from sluice.declare.settings import Driver
from sluice.errors import MissingDependency
from sluice.spark.java import java_home


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact, as published."""

    name: str
    version: str
    size: int
    sha256: str
    organisation: str = "io.delta"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


MODULE = """<ivy-module version="2.0">
  <info organisation="sluice" module="jars"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="*->master"/>'
FETCH_TIMEOUT_S = 300


class FetchFailed(Exception):
    """Failed download, with Ivy's last words."""


def retrieve(
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
        _run_java([java, *command])
    except FetchFailed as failure:
        if "SSLHandshakeException" not in str(failure):
            raise
        _run_java([java, *_trust(folder, environ), *command])


def _run_java(command: list[str]) -> None:
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise FetchFailed(f"no answer within {FETCH_TIMEOUT_S} s") from late
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


_SDK = """
annotations 13758 6f36bd87155d1dd85d6efbdd29e532e3759a022211feb71affebee1aa34f04b8
apache-client 77013 6eade21b482724ed0a4613eaa95d20e47e7a81304bd28538ac427fece94a7740
arns 16323 c63cc29f76a8527e9e10b621703163df541dc5cb315508dc2898518602c75380
auth 241952 6b601323004833fb4a857ffc95db4795e0e6320eb93e64b1246c655c9ff04994
aws-core 192161 fdb5fc8f1a48d97fa7d04d3460fb42f6973c7b1bbe1b9d317871ef0162bcb623
aws-query-protocol 69369 9b4cf9b78977cc9f5b4ceae9c435dedbde6a055a0f8d9e053eaca945715e2a9f
aws-xml-protocol 102272 4f59176da2522c357b1993e4a890fde529f12f365795ef86269bde4a3984cd0d
checksums 69585 94464af4374d08ecf33ca06ed4d03e1615529e547726e26b56abacefbeee7948
checksums-spi 8044 88b5af85ac2d3c862be8856be4e683ab31932e4a5a3c1c45af864d2671ac7cec
crt-core 17774 2c6aaa17bf9ccbb9d962dded4351e73decb197e3c5519970e0dae17e05d3df62
endpoints-spi 13168 ef02441bda916959b8341290b49c68cc35538e1ad6f8629b75d8334dc6653e00
http-auth 17475 3ec933a06e751a05e195eb3589209e23c44e1897263b6fcae34ef4cc63cd4491
http-auth-aws 171754 c4acb92fdec90bfd9b67bfab8e41b69cd152c03cacc10281a8ab464791856e01
http-auth-aws-eventstream 8705 709107552f302be3fa9e05969a3779f5c0f07fb809e6fa1fa571a6f0c61326dd
http-auth-spi 48042 4495463406bb98eb136f2c3f3604ed5f08ec9974ebc3f34f2121b20679f61d5c
http-client-spi 91685 728be89b2a07b595edb0adee3a2cbbbdd4cb1f4caddde0d08c3979fe2620dedb
identity-spi 30963 188d73db7d4e2361654bc3c5a1b3eaeb445d0500fb012cc46c5d67975adf97bf
imds 55827 d3772fb8a372cc61f58b12ac90d7809a40d7c32b061787f2478ae660055ad23d
json-utils 33225 80d67a6bb3e7eb49c7d4b6e4ba4c1463ed7da0192b795158328602dc131c5ecc
metrics-spi 27262 c2a4ee90a21081317e2e6eba0c414d05d3d518aed2f86b1c1710a7367b450487
netty-nio-client 292688 b82f8b33e5c85273a47da45ede884d7ccb31c9c2f69e6910a76c5c48fa1275dc
profiles 50524 0f4ef7ca72ccd80dd49ebeaf7f3ce60a7d7a00da59a91aeeae6e91052bbacbd8
protocol-core 44371 f2532eca6ba2142fe4821d5decb03c83a3e15dc8bfae2240e7f2efa75f9868b5
regions 962286 77eae87b34ce96ecdf916a9bc06684dbeafcb6d38ef0513285fa5d5d6d41f5ca
retries 66309 f99fb2f8c66d7e859955b3542d3af8f9de8f23a21d5e3250f0f2c5f18487e469
retries-spi 31487 668638751d059c527ddd41ffa4dcebe36a7c14860ed56776df09b861c14dc7dd
s3 4084242 f23532c5223be9b0bfec0d72837ed09ed34dbdf8022818ba145b20076a78b4bc
s3-transfer-manager 251117 0eec78870b3d0abc509a847072cf963cb2ae6e360dc6161a9449b3398c470476
sdk-core 1040729 fa559a4ce598852f3519c8f3b36250f583b0858a7611eedc4a81997778c617f4
sts 545150 8d0f7816d3f96e3f00249f5d054d926e939a104bcf9ef57676ee0b16c59684d2
third-party-jackson-core 535001 32f4252c6c2df8f3a4aff885e6dc77024ad6b4cb48455d07b461ec30c41643ea
utils 241618 642aeef536a071668f0b772f05f9d21573abf6955e7b6fb5fdb893760cca10e8
utils-lite 8798 e004806def5e22ec98edc48a133ff3317166255e1ba29d93d129e9fdfa64a7be
"""

HADOOP = "3.5.0"  # whose S3A this is
S3A: tuple[Jar, ...] = (
    Jar(
        "analyticsaccelerator-s3",
        "1.3.1",
        2_473_459,
        "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
        "software.amazon.s3.analyticsaccelerator",
    ),
    Jar(
        "eventstream",
        "1.0.1",
        30_193,
        "0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822",
        "software.amazon.eventstream",
    ),
    Jar(
        "hadoop-aws",
        HADOOP,
        938_071,
        "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
        "org.apache.hadoop",
    ),
    Jar(
        "reactive-streams",
        "1.0.4",
        11_640,
        "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
        "org.reactivestreams",
    ),
    *(
        Jar(name, "2.35.4", int(size), sha256, "software.amazon.awssdk")
        for name, size, sha256 in map(str.split, _SDK.strip().splitlines())
    ),
)

SOURCE = Path(__file__).with_name("ConditionalLogStore.scala")
_COMPILER = ("scala-compiler", "scala-library", "scala-reflect", "jline")
_USED = ("scala-library", "hadoop-client-api", "hadoop-client-runtime")
COMPILE_TIMEOUT_S = 300


def log_store(jars: Iterable[Path], environ: Mapping[str, str]) -> Path:
    """Return the jar with the log store, compiled against these and Spark's own.

    Safe to repeat, even at the same time. Takes some seconds the first time.
    """
    against = [*jars, *_sparks(_USED)]
    known = "\n".join([SOURCE.read_text("utf-8"), *(jar.name for jar in against)])
    name = f"sluice-log-store-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jar"
    folder = cache_folder(environ) / "jars"
    if not (folder / name).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".compile-") as draft:
            _compile(Path(draft, name), against, environ).replace(folder / name)
    return folder / name


def _compile(to: Path, against: Iterable[Path], environ: Mapping[str, str]) -> Path:
    command = [
        str(java_home(environ) / "bin" / "java"),
        *("-cp", _class_path(_sparks(_COMPILER)), "scala.tools.nsc.Main", "-nowarn"),
        *("-d", str(to), "-classpath", _class_path(against), str(SOURCE)),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
    )
    if done.returncode or not to.is_file():
        said = (done.stdout + done.stderr).strip().splitlines()
        raise MissingDependency(
            f"the log store for S3 does not compile: {said[0] if said else 'no reason given'}",
            hint="install the pyspark of Sluice's lock again, and the Java that it needs",
        )
    return to


def _sparks(names: Iterable[str]) -> list[Path]:
    found = find_spec("pyspark")
    folder = Path(found.origin).parent / "jars" if found and found.origin else Path()
    return sorted(jar for name in names for jar in folder.glob(f"{name}-[0-9]*.jar"))


def hadoop_of_spark() -> str:
    """Return the version of the Hadoop inside the installed PySpark; '' without PySpark."""
    return next((jar.stem.rpartition("-")[2] for jar in _sparks(("hadoop-client-api",))), "")


def _class_path(jars: Iterable[Path]) -> str:
    return os.pathsep.join(map(str, jars))


STORAGE = Jar(
    "delta-storage",
    "4.4.0",
    113_863,
    "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
)
# Delta 4.4 for each release of Spark that Sluice runs on.
DELTA: Mapping[str, Jar] = {
    "4.1": Jar(
        "delta-spark_4.1_2.13",
        "4.4.0",
        9_471_929,
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    "4.2": Jar(
        "delta-spark_4.2_2.13",
        "4.4.0",
        9_515_916,
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
}

DRIVERS: Mapping[Driver, tuple[Jar, ...]] = {
    "postgresql": (
        Jar(
            "postgresql",
            "42.7.8",
            1_116_727,
            "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
            "org.postgresql",
        ),
    ),
    "s3": S3A,
}


def classpath(
    environ: Mapping[str, str] = os.environ, drivers: Iterable[Driver] = ()
) -> list[Path]:
    """Return all jars for `spark.driver.extraClassPath`, fetching missing ones first."""
    asked = list(drivers)
    if "s3" in asked and (hadoop := hadoop_of_spark()) != HADOOP:
        raise MissingDependency(
            f"Spark's access to S3 needs the Hadoop {HADOOP} of Spark 4.2; this pyspark "
            f"{version('pyspark')} has Hadoop {hadoop}",
            hint="run: pip install 'pyspark>=4.2,<4.3' 'pyspark-client>=4.2,<4.3'",
        )
    jars = [[delta(), STORAGE], *(DRIVERS[driver] for driver in asked)]
    found = [path for group in jars for path in _found(group, environ)]
    return [*found, log_store(found, environ)] if "s3" in asked else found


def delta() -> Jar:
    """Return Delta's jar for the PySpark that is installed.

    PySpark and its client share a folder: of two versions one has overwritten files of the other.
    """
    spark, client = version("pyspark"), version("pyspark-client")
    if spark != client:
        raise MissingDependency(
            f"pyspark is {spark}, but pyspark-client, whose files lie in the same folder, {client}",
            hint=f"run: pip install --force-reinstall --no-deps pyspark=={client} "
            f"pyspark-client=={client}",
        )
    if jar := DELTA.get(spark.rpartition(".")[0]):
        return jar
    raise MissingDependency(
        f"Delta's jar for pyspark {spark} is not known; known are {' and '.join(DELTA)}",
        hint="run: pip install 'sluice-views[spark]'",
    )


def _found(jars: Sequence[Jar], environ: Mapping[str, str]) -> list[Path]:
    for folder in folders(environ):
        if has_jars(folder, jars):
            return [folder / jar.file for jar in jars]
    if chosen := environ.get("SLUICE_JARS"):
        raise MissingDependency(
            f"SLUICE_JARS ({chosen}) lacks {' or '.join(jar.file for jar in jars)}, whole",
            hint="put them there, or unset SLUICE_JARS to have them fetched",
        )
    return fetch(cache_folder(environ) / "jars", jars, environ)


def folders(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield the folders to search, in order; a folder that the user names is the only one."""
    if chosen := environ.get("SLUICE_JARS"):
        yield Path(chosen).absolute()
        return
    yield cache_folder(environ) / "jars"
    yield Path(__file__).resolve().parents[1] / "jars"


def has_jars(folder: Path, jars: Sequence[Jar]) -> bool:
    """True if all jars are in the folder at full size."""
    try:
        return all((folder / jar.file).stat().st_size == jar.size for jar in jars)
    except OSError:
        return False


def fetch(folder: Path, jars: Sequence[Jar], environ: Mapping[str, str]) -> list[Path]:
    """Download the jars into `folder` and check them. Safe to repeat, even at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as draft:
        _download(Path(draft), jars, environ)
        for jar in jars:
            check(Path(draft) / jar.file, jar)
        return [(Path(draft) / jar.file).replace(folder / jar.file) for jar in jars]


def check(file: Path, jar: Jar) -> None:
    """Refuse a file that is not the published artifact."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != jar.sha256:
        raise MissingDependency(
            f"the file fetched for {jar.file} has the wrong SHA-256: {digest}, not {jar.sha256}",
            hint="ask the operator of that repository; the file was deleted",
        )


def _download(folder: Path, jars: Sequence[Jar], environ: Mapping[str, str]) -> None:
    names = " and ".join(jar.file for jar in jars)
    try:
        retrieve([(jar.organisation, jar.name, jar.version) for jar in jars], folder, environ)
    except FetchFailed as failure:
        raise MissingDependency(
            f"jars are missing ({names}) and can't be fetched: {failure}",
            hint='with network, run "python -m sluice.spark.jars"; without, copy '
            f"{names} to a folder and set SLUICE_JARS to it",
        ) from failure


if __name__ == "__main__":
    try:
        print(*classpath(drivers=[name for name in DRIVERS if name in sys.argv[1:]]), sep="\n")
    except MissingDependency as error:
        sys.exit(f"error: {error}")
