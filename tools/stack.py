"""Services of `make up`, the demo and the tests: Airflow, and Spark Connect if it is the engine."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from airflow_local import LocalAirflow
from daemons import Daemons
from ports import free_port
from sluice.declare.project import Project, load
from spark_connect import server

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".airflow"


@dataclass(frozen=True)
class Ports:
    """Ports of the loopback address."""

    ui: int
    connect: int

    @classmethod
    def usual(cls) -> "Ports":
        """Return the usual ports, as far as they are free."""
        return cls(free_port(8080), free_port(15002))

    @classmethod
    def free(cls) -> "Ports":
        """Any."""
        return cls(free_port(), free_port())


@dataclass(frozen=True)
class Stack:
    """A project's services, with their state in `home`."""

    home: Path
    engine: str
    ports: Ports
    root: Path = ROOT
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def found(cls, home: Path = HOME) -> "Stack | None":
        """Return the one that runs with its state in `home`."""
        with suppress(OSError, ValueError):
            told = json.loads((home / "stack.json").read_text("utf-8"))
            stack = cls(home, told["engine"], Ports(**told["ports"]))
            return stack if stack.daemons.running() else None
        return None

    @cached_property
    def daemons(self) -> Daemons:
        return Daemons(self.home / "run")

    @cached_property
    def airflow(self) -> LocalAirflow:
        return LocalAirflow(self.home, self.root / "dags", self.ports.ui, self.environ)

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment with the addresses of these services, for the configuration."""
        remote = f"sc://127.0.0.1:{self.ports.connect}"
        return {
            "SLUICE_CONFIG": str(self.root / "config"),
            "SLUICE_ENGINE": self.engine,
            "SLUICE_REMOTE": remote,
            **self.variables,
        }

    @cached_property
    def project(self) -> Project:
        """Return the project as these services see it."""
        environ = {**os.environ, **self.environ}
        return load(environ["SLUICE_CONFIG"], environ=environ)

    @property
    def is_whole(self) -> bool:
        """Return True if all of its services are alive."""
        names = {"api-server", "scheduler", "dag-processor"}
        return names | ({"spark-connect"} if self.engine == "connect" else set()) <= set(
            self.daemons.running()
        )

    def start(self) -> None:
        """Start everything that does not run yet; return when it can be used."""
        self.home.mkdir(parents=True, exist_ok=True)
        told = {"engine": self.engine, "ports": asdict(self.ports)}
        (self.home / "stack.json").write_text(json.dumps(told), "utf-8")
        spark = server(self.project, self.ports.connect, self.environ)
        if self.engine == "connect":
            self.daemons.start(spark)
        self.airflow.prepare()
        self.airflow.start(self.daemons)
        if self.engine == "connect":
            self.daemons.wait(spark)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Yield the started services; stop them at the end, even if not all of them started."""
        try:
            self.start()
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop everything. Safe to repeat."""
        self.daemons.stop()
        (self.home / "stack.json").unlink(missing_ok=True)
