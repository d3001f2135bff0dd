"""A complete Airflow on loopback, with its state in one folder: for `make up`, the demo and the
tests.

The components are started one by one (`airflow standalone` leaves orphans, and its log servers
listen on all interfaces), on 127.0.0.1, on SQLite, with secrets made on first use. The settings are
for few cores and short tasks; comments give the gain of each.
"""

import json
import os
import secrets
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from airflow_client import AirflowClient
from daemons import Daemon, Daemons, is_listening
from sluice.errors import SluiceError

USER = "admin"
KEYS = {"API_AUTH__JWT_SECRET": 64, "API__SECRET_KEY": 32, "CORE__FERNET_KEY": 32}  # bytes


class AirflowNotSetUp(SluiceError):
    """Airflow's metadata database could not be created."""


@dataclass(frozen=True)
class LocalAirflow:
    """Airflow with its state in `home`, reading `dags`, on `port` of loopback."""

    home: Path
    dags: Path
    port: int
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.home / "airflow.db"

    @property
    def password(self) -> str:
        """The password of `admin`."""
        known: dict[str, str] = json.loads(self._passwords.read_text("utf-8"))
        return known[USER]

    @property
    def _passwords(self) -> Path:
        return self.home / "passwords.json"

    def prepare(self) -> None:
        """Create the secrets and the metadata database, unless they exist."""
        self.home.mkdir(parents=True, exist_ok=True)
        if not self._passwords.exists():
            _write_secret(self._passwords, json.dumps({USER: secrets.token_urlsafe(12)}))
        run = subprocess.run(
            [*AIRFLOW, "db", "migrate"],
            env=self.environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            tail = "\n".join((run.stdout + run.stderr).splitlines()[-15:])
            raise AirflowNotSetUp(f"Airflow's database {self.database} could not be made:\n{tail}")

    def start(self, daemons: Daemons) -> None:
        """Start all components together; return when the UI answers and tasks can run."""
        components = self.components(daemons)
        for component in components:
            daemons.start(component)
        for component in components:
            daemons.wait(component)

    def components(self, daemons: Daemons) -> list[Daemon]:
        """Return its daemons. There is no triggerer, because no task defers."""
        environ = self.environ()
        scheduler, processor = daemons.log("scheduler"), daemons.log("dag-processor")
        return [
            Daemon(
                "api-server", [*AIRFLOW, "api-server"], environ, partial(is_listening, self.port)
            ),
            Daemon(
                "scheduler",
                [*AIRFLOW, "scheduler", "--skip-serve-logs"],
                environ,
                partial(_says, scheduler, "Starting the scheduler"),
            ),
            Daemon(
                "dag-processor",
                [*AIRFLOW, "dag-processor"],
                environ,
                partial(_says, processor, "Checking for new files"),
            ),
        ]

    def client(self) -> AirflowClient:
        """Return the client of its REST API, as `admin`."""
        return AirflowClient.login(self.url, USER, self.password)

    def environ(self) -> dict[str, str]:
        """Return the environment of its components, and of `airflow` on the command line."""
        settings = {
            **_quiet(),
            **_addresses(self.url, self.port),
            **_quick(),
            **self._secrets(),
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.database}",
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._passwords),
        }
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        python_path = os.pathsep.join([str(SETTINGS), os.environ.get("PYTHONPATH", "")])
        return {
            **os.environ,
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "AIRFLOW_HOME": str(self.home),
            "PATH": path,
            "PYTHONPATH": python_path,
            "OPENBLAS_NUM_THREADS": "1",
            "SCARF_ANALYTICS": "false",
            "DO_NOT_TRACK": "1",
            **self.extra,
        }

    def _secrets(self) -> dict[str, str]:
        file = self.home / "secrets.json"
        if not file.exists():
            made = {
                n: urlsafe_b64encode(secrets.token_bytes(of)).decode() for n, of in KEYS.items()
            }
            file.parent.mkdir(parents=True, exist_ok=True)
            _write_secret(file, json.dumps(made))
        known: dict[str, str] = json.loads(file.read_text("utf-8"))
        return known


SETTINGS = Path(__file__).parent / "airflow_settings"
AIRFLOW = (sys.executable, "-m", "airflow")


def _quiet() -> dict[str, str]:
    return {
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS": "False",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
        "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "LOGGING__COLORED_CONSOLE_LOG": "False",
    }


def _addresses(url: str, port: int) -> dict[str, str]:
    return {
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__BASE_URL": url,
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
    }


def _quick() -> dict[str, str]:
    return {
        # Workers fork with the imports of the DAG files done: 0.1 s a task instead of 1 to 2.
        "CORE__EXECUTOR": "sluice.airflow.executor.WarmLocalExecutor",
        "CORE__PARALLELISM": "4",
        "CORE__MP_START_METHOD": "fork",
        "CORE__EXECUTE_TASKS_NEW_PYTHON_INTERPRETER": "False",
        # A supervisor that misses its task's end sleeps this long (one in eight did; default 5).
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
        "SCHEDULER__JOB_HEARTBEAT_SEC": "5",
        "API__WORKERS": "1",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "15",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "5",
        "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "1",
    }


def _says(log: Path, words: str) -> bool:
    try:
        return words in log.read_text("utf-8", errors="replace")
    except OSError:
        return False


def _write_secret(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(text)
