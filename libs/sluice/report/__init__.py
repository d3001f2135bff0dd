"""Reports on a lake after a run: the quality report, from the kept results and the tables.

A visit of a page is what its links begin with, and the foot of each page.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from sluice.language.names import declared_id
from sluice.pages import Action, Content, Text, ago, second

INDEX = "index.html"  # of the quality report


@dataclass(frozen=True)
class Visit:
    """One visitor's page as it is served now: below `root`, in an Airflow below `airflow`, if any.

    `sees`: whether they may see a pipeline, by its name. `reports`: files of the quality report
    that they may open. `has_run`: whether Airflow has a run, by its DAG and its id. `may_trigger`:
    whether they may start runs of a DAG. `says`: how a message is shown to them. `notice`: what
    every page warns of.
    """

    root: str
    airflow: str | None
    environment: str
    reports: Collection[str]
    now: datetime
    sees: Callable[[str], bool]
    has_run: Callable[[str, str], bool]
    may_trigger: Callable[[str], bool] = lambda _: False
    says: Callable[[str], str] = str
    notice: str = ""

    def table(self, table_id: str, words: str = "", look: str = "") -> Text:
        """Return a link to a table's page; of an internal one, to that of its table.

        A table of a pipeline that the visitor may not see has its name alone.
        """
        page = f"{self.root}/tables/{declared_id(table_id)}" if self.sees_table(table_id) else ""
        return Text(words or table_id, look, page)

    def sees_table(self, table_id: str) -> bool:
        """True if the visitor may see the table's rows and files."""
        return self.sees(pipeline_of(table_id))

    def why(self, table_id: str, names: Sequence[tuple[str, str]]) -> str:
        """Return the address of a row's explanation, by options of `sluice why` that name it."""
        return f"{self.root}/tables/{table_id}/why?{urlencode(names)}"

    def dag(self, name: str) -> Text:
        """Return a link to a DAG in Airflow; without Airflow, to the page of that pipeline."""
        if self.airflow is None:
            return Text(name, href=f"{self.root}/pipelines/{name}")
        return Text(name, "outside", f"{self.airflow}/dags/{name}")

    def run(self, dag_id: str, run: str | None) -> Content:
        """Return a run's id, as a link if it was a run of Airflow; nothing if there was no run."""
        if not run or not self.has_run(dag_id, run):
            return run
        return Text(run, "outside", f"{self.airflow}/dags/{dag_id}/runs/{quote(run)}")

    def deliver(self, pipeline: str) -> Content:
        """Return the button that delivers what changed, if the user may trigger that DAG."""
        if not self.may_trigger(pipeline):
            return ""
        return Action(
            "Deliver what changed",
            "Triggers a run that delivers due intervals, and those whose files have changed",
            f"{self.airflow}/api/v2/dags/{pipeline}/dagRuns",
            json.dumps({"logical_date": None, "conf": {"changed": True}}),
            f"{self.airflow}/dags/{pipeline}/runs",
        )

    def path(self, *parts: Content) -> Content:
        """Return the path to a page."""
        return [Text("Sluice", href=f"{self.root}/"), *([" / ", part] for part in parts)]

    def since(self, at: datetime | None) -> Content:
        """Return the time since then, with that time as its tooltip."""
        return Text(ago(at, self.now), title=second(at))

    @property
    def foot(self) -> Content:
        report = Text("Quality report", href=f"{self.root}/report/{INDEX}")
        plan = Text("What comes next", href=f"{self.root}/plan")
        return [
            Text(self.notice and f"{self.notice}.", "line wrong"),
            f"As of {second(self.now)} UTC; all times are UTC. ",
            report if INDEX in self.reports else "",
            "" if self.airflow is not None else [" · " if INDEX in self.reports else "", plan],
        ]


def pipeline_of(table_id: str) -> str:
    """Return the name of a table's pipeline, also of an internal table's."""
    return table_id.partition(".")[0]
