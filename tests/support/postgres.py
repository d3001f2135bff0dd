"""A PostgreSQL of the tests' own: started for them on a free port of loopback, and stopped.

Its programs are those of the machine; where there are none, Debian's package is installed, without
the server that it would start by itself. It refuses to be run by root, so root runs it as the
package's user, `postgres`.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ports import free_port

USER = "postgres"
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")


@dataclass
class Server:
    """One server; `app` may log in with its password, and with nothing else."""

    folder: Path
    programs: Path
    port: int
    password: str = field(default_factory=lambda: secrets.token_hex(12))

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        _own(secret)
        how = ("--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-locale")
        self._run("initdb", f"--pgdata={self.data}", "--username=app", "--no-sync", *how)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
        log = f"--log={self.folder / 'log'}"
        self._run("pg_ctl", "start", "-w", f"-D{self.data}", log, f"-o{options} -c fsync=off")

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "fast", f"-D{self.data}")

    def sql(self, statements: str) -> None:
        where = f"postgresql://app@127.0.0.1:{self.port}/postgres"
        self._run("psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={statements}", where)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            check=False,
            user=USER if os.geteuid() == 0 else None,
            env={**os.environ, "PGPASSWORD": self.password},
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"


@contextmanager
def running() -> Iterator[Server]:
    """A server with an empty database."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="sluice-postgres-"))
    _own(folder)
    server = Server(folder, programs, free_port())
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            if (server.data / "postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    """The folder of initdb, pg_ctl and psql."""
    found = _found() or _installed()
    if found is None:
        pytest.skip("there is no PostgreSQL here, and only root could install it")
    return found


def _found() -> Path | None:
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((p for p in places if (p / "initdb").exists() and (p / "psql").exists()), None)


def _installed() -> Path | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    if not NO_CLUSTER.exists():
        NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
        NO_CLUSTER.write_text("create_main_cluster = false\nstart_conf = 'manual'\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    keep = "-oDpkg::Options::=--force-confold"
    for command in (
        ["update"],
        ["install", "--yes", "--no-install-recommends", keep, "postgresql"],
    ):
        subprocess.run(["apt-get", "-qq", *command], check=True, env=environment)
    return _found()


def _own(path: Path) -> None:
    if os.geteuid() == 0:
        known = pwd.getpwnam(USER)
        os.chown(path, known.pw_uid, known.pw_gid)
    path.chmod(0o700 if path.is_dir() else 0o600)
