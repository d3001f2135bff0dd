"""A PostgreSQL on loopback for Airflow's metadata, with its data in a separate folder."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from secrets import token_urlsafe

from daemons import Daemon, Daemons, is_listening
from ports import free_port

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin", "/opt/homebrew/bin")
USER = "airflow"


def programs() -> Path | None:
    """Return the folder of the newest installed PostgreSQL's programs."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/").glob(PLACES[0].lstrip("/")), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


@dataclass(frozen=True)
class Postgres:
    """One server. It refuses to run as root, so root runs it as nobody."""

    home: Path
    programs: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=token_urlsafe, repr=False)

    @property
    def address(self) -> str:
        """URL for SQLAlchemy."""
        return f"postgresql+psycopg2://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    @cached_property
    def data(self) -> Path:
        return self.home / "data"

    def start(self, daemons: Daemons) -> None:
        """Create its data folder, and start it; return when it answers."""
        self.home.mkdir(parents=True, exist_ok=True)
        secret = self.home / "password"
        secret.write_text(self.password, "utf-8")
        if os.geteuid() == 0:
            for place in (self.home, secret):
                shutil.chown(place, "nobody", "nogroup")
        init = ["initdb", "-D", str(self.data), "-U", USER, "--pwfile", str(secret)]
        init += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        subprocess.run(self._command(*init), check=True, capture_output=True, cwd=self.home)
        serve = ["postgres", "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self.port)]
        serve += ["-k", str(self.home), "-c", "fsync=off"]
        ready = partial(is_listening, self.port)
        daemon = Daemon("postgres", self._command(*serve), dict(os.environ), ready)
        daemons.start(daemon)
        daemons.wait(daemon)

    def _command(self, program: str, *arguments: str) -> list[str]:
        nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        prefix = nobody if os.geteuid() == 0 else []
        return [*prefix, str(self.programs / program), *arguments]
