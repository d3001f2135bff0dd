"""Calls of Airflow's REST API for the demo and the tests, with results as data."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import httpx

from sluice.errors import SluiceError

Reprocess = Literal["none", "failed", "completed"]
DONE = frozenset({"success", "failed"})


class AirflowRefused(SluiceError):
    """A call that Airflow has answered with an error."""


@dataclass(frozen=True)
class RunOfTask:
    """Present state of one task in one run."""

    task: str
    run: str
    day: str
    state: str
    seconds: float
    attempt: int


@dataclass(frozen=True)
class RunOfDag:
    """Present state of one run of a DAG."""

    id: str
    start: str
    state: str


class AirflowClient:
    """Client of one Airflow."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    @classmethod
    def login(cls, url: str, user: str, password: str) -> "AirflowClient":
        """Wait for the server, up to a minute, and log in."""
        http = httpx.Client(base_url=url, timeout=60)
        credentials = {"username": user, "password": password}
        answer = _patiently(lambda: http.post("/auth/token", json=credentials))
        http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        return cls(http)

    def health(self) -> dict[str, Any]:
        """Return each component with its last heartbeat."""
        return _body(self.http.get("/api/v2/monitor/health"))

    def dags(self) -> list[str]:
        """Return the DAGs that Airflow has loaded."""
        return [dag["dag_id"] for dag in self._get("dags")["dags"]]

    def import_errors(self) -> list[str]:
        """Return Airflow's import errors, as its UI shows them."""
        return [error["stack_trace"] for error in self._get("importErrors")["import_errors"]]

    def unpause(self, dag: str) -> None:
        """Unpause the DAG."""
        self._send("PATCH", f"dags/{dag}", {"is_paused": False})

    def pause(self, dag: str) -> None:
        """Pause the DAG, so that no further run begins."""
        self._send("PATCH", f"dags/{dag}", {"is_paused": True})

    def trigger(self, dag: str, logical_date: datetime | None = None, **answers: Any) -> str:
        """Trigger a run with these form values; return its id. Without a date, it has no data
        interval.
        """
        date = logical_date.isoformat() if logical_date else None
        body = {"logical_date": date, "conf": answers}
        return str(self._send("POST", f"dags/{dag}/dagRuns", body)["dag_run_id"])

    def clear(self, dag: str, run: str, task: str) -> None:
        """Clear a task and its downstream tasks in that run."""
        body = {"dag_run_id": run, "task_ids": [task], "include_downstream": True}
        whole = {"dry_run": False, "only_failed": False}
        self._send("POST", f"dags/{dag}/clearTaskInstances", body | whole)

    def backfill(
        self,
        dag: str,
        start: datetime,
        last: datetime,
        *,
        runs: int,
        reprocess: Reprocess = "none",
        backwards: bool = False,
    ) -> int:
        """Create a backfill of the intervals that start from `start` to `last`, both included.

        "completed" is All Runs in the dialog: days that ran already run again. SQLite has one
        writer and refuses a backfill while Airflow writes, so the request is repeated.
        """
        body = {
            "dag_id": dag,
            "from_date": start.isoformat(),
            "to_date": last.isoformat(),
            "max_active_runs": runs,
            "run_backwards": backwards,
            "reprocess_behavior": reprocess,
        }
        return int(self._send("POST", "backfills", body)["id"])

    def finish(self, backfill: int) -> None:
        """End a backfill whose runs have all ended. Airflow itself checks only twice a minute, and
        refuses another backfill of the DAG until then.
        """
        answer = _patiently(lambda: self.http.put(f"/api/v2/backfills/{backfill}/cancel"))
        if answer.status_code != httpx.codes.CONFLICT:  # it looked just now
            _body(answer)

    def await_dag(self, dag: str, seconds: float = 240) -> None:
        """Return when Airflow has loaded the DAG. Raises AirflowRefused if it can't."""
        deadline = time.monotonic() + seconds
        while dag not in self.dags():
            if errors := self.import_errors():
                raise AirflowRefused("\n".join(errors))
            if time.monotonic() > deadline:
                raise AirflowRefused(f"the DAG {dag} did not appear within {seconds:.0f} s")
            time.sleep(0.2)

    def runs(self, dag: str, kind: str = "") -> list[RunOfDag]:
        """Return the DAG's runs, oldest interval first."""
        query = {"limit": "1000"} | ({"run_type": kind} if kind else {})
        found = self._get(f"dags/{dag}/dagRuns", query)["dag_runs"]
        runs = [RunOfDag(r["dag_run_id"], _day(r["logical_date"]), r["state"]) for r in found]
        return sorted(runs, key=lambda run: (run.start, run.id))

    def tasks(self, dag: str, run: str = "~") -> list[RunOfTask]:
        """Return the DAG's tasks, of one run or all."""
        found = self._all(f"dags/{dag}/dagRuns/{run}/taskInstances", "task_instances")
        return [_task(each) for each in found]

    def log(self, dag: str, task: RunOfTask) -> list[str]:
        """Return the log lines of the task's last attempt."""
        where = f"dags/{dag}/dagRuns/{task.run}/taskInstances/{task.task}/logs/{task.attempt}"
        return [line for entry in self._get(where)["content"] for line in _lines(entry)]

    def xcom(self, dag: str, run: str, task: str, key: str = "return_value") -> Any:
        """Return an XCom of a task."""
        where = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"
        return self._get(where, {"deserialize": "true"})["value"]

    def asset_events(self) -> list[dict[str, Any]]:
        """Return the events of the tables' assets, oldest first."""
        events = self._all("assets/events", "asset_events")
        return sorted(events, key=lambda event: str(event["timestamp"]))

    def _all(self, path: str, entries: str) -> list[dict[str, Any]]:
        """Return the entries of all pages: Airflow's have at most a hundred."""
        found: list[dict[str, Any]] = []
        total = 1
        while len(found) < total:
            page = self._get(path, {"limit": "1000", "offset": str(len(found))})
            total = page["total_entries"]
            found += page[entries]
        return found

    def _get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        return _body(_patiently(lambda: self.http.get(f"/api/v2/{path}", params=query)))

    def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _body(_patiently(lambda: self.http.request(method, f"/api/v2/{path}", json=body)))


def _patiently(call: Any, seconds: float = 240) -> httpx.Response:
    deadline = time.monotonic() + seconds
    while True:
        try:
            answer: httpx.Response = call()
            if not _may_pass(answer):
                return answer
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            return answer
        time.sleep(0.3)


def _may_pass(answer: httpx.Response) -> bool:
    """True if it is too busy: its SQLite database may be locked for longer than it waits."""
    is_locked = answer.is_server_error and "Database error" in answer.text
    is_repeatable = answer.request.method != "POST"
    return answer.status_code == httpx.codes.SERVICE_UNAVAILABLE or (is_locked and is_repeatable)


def _body(answer: httpx.Response) -> dict[str, Any]:
    if answer.is_error:
        said = answer.text[:500]
        request = answer.request
        raise AirflowRefused(f"{request.method} {request.url}: {answer.status_code} {said}")
    body: dict[str, Any] = answer.json()
    return body


def _task(found: dict[str, Any]) -> RunOfTask:
    return RunOfTask(
        found["task_id"],
        found["dag_run_id"],
        _day(found["logical_date"]),
        found["state"] or "",
        float(found["duration"] or 0),
        int(found["try_number"]),
    )


def _day(logical_date: str | None) -> str:
    return (logical_date or "")[:10]


def _lines(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        yield str(entry.get("event", ""))
        for error in entry.get("error_detail") or ():
            yield f"{error.get('exc_type')}: {error.get('exc_value')}"
