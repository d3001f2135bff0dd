"""A visit of the page: what its links begin with, and the foot of each page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from sluice.pages.elements import Content, Text
from sluice.pages.wording import ago, second


@dataclass(frozen=True)
class Visit:
    """The page as it is served now: below `root`, in an Airflow below `airflow`."""

    root: str
    airflow: str
    environment: str
    has_report: bool
    now: datetime

    def table(self, table_id: str, words: str = "", look: str = "") -> Text:
        """Return a link to a table's page; of an internal one, to that of its table."""
        return Text(words or table_id, look, f"{self.root}/tables/{table_id.partition('__')[0]}")

    def why(self, table_id: str, names: Sequence[tuple[str, str]]) -> str:
        """Return the address of a row's explanation, by options of `sluice why` that name it."""
        return f"{self.root}/tables/{table_id}/why?{urlencode(names)}"

    def dag(self, name: str) -> Text:
        """Return a link to a DAG in Airflow."""
        return Text(name, "outside", f"{self.airflow}/dags/{name}")

    def run(self, dag_id: str, run: str | None) -> Content:
        """Return a link to a run in Airflow, if there was one."""
        address = f"{self.airflow}/dags/{dag_id}/runs/{quote(run or '')}"
        return Text(run, "outside", address) if run else None

    def path(self, *parts: Content) -> Content:
        """Return the path to a page."""
        return [Text("Sluice", href=f"{self.root}/"), *([" / ", part] for part in parts)]

    def since(self, at: datetime | None) -> Content:
        """Return the time since then, with that time as its tooltip."""
        return Text(ago(at, self.now), title=second(at))

    @property
    def foot(self) -> Content:
        """Foot of every page."""
        report = Text("Quality report", href=f"{self.root}/report/index.html")
        return [
            f"As of {second(self.now)} UTC; all times are UTC. ",
            report if self.has_report else "",
        ]
