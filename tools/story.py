"""Output of the demo: results read without Spark, the changes of a correction, and times."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from airflow_client import RunOfTask
from landing import CORRECTED_DEPARTMENT, Correction
from sluice.declare.project import Project
from sluice.dimension_views.reader import JoinedTable
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.engine.plan import nodes_of
from sluice.errors import SluiceError
from sluice.operate.delivering import replay, to_replay
from sluice.operate.verify import Verification, verify
from sluice.read.changelog import CHANGE_TYPE, COMMIT_VERSION, Changelog
from sluice.read.keyed import KeyedTable
from sluice.read.lake import Lake
from sluice.read.status import status
from sluice.report.publish import publish
from sluice.spark.session import Spark, with_spark
from sluice.terminal.output import Format, print_table, write_record

DEPARTMENTS = ("GROCERY", "PRODUCE", CORRECTED_DEPARTMENT)
CHANGED = ("top_products", "households")
SHOWN = 12
LINES = 5
console = Console()


def told(work: Callable[[], int]) -> int:
    """Run `work` and return its exit code; errors are reported without a trace."""
    try:
        return work()
    except SluiceError as error:
        console.print(f"error: {error}", style="red", markup=False)
        return int(error.exit_code)
    except KeyboardInterrupt:
        console.print("stopped", style="yellow")
        return 130


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Show long work: a spinner on a terminal, else a line."""
    if console.is_terminal:
        with console.status(what):
            yield
        return
    console.print(f"{what} ...", markup=False)
    yield


def say(text: str) -> None:
    """Print a line unbroken, so that paths and commands can be copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def chapter(title: str) -> None:
    """A heading."""
    console.print()
    console.rule(f"[bold]{title}", align="left")


def results(lake: Lake, household: int) -> None:
    """Show leaders of three departments, a household, one of its invoices, its baskets."""
    for department in DEPARTMENTS:
        leaders = _leaders(lake, department)
        show(
            f"top_products: {department}",
            leaders,
            ("rank", "product_id", "product", "sales", "units"),
        )
    row = lake.table("households").get(household)
    console.print(f"households: {household}", style="bold")
    write_record(row or {}, Format.TABLE)
    baskets = list(lake.window("baskets").fetch(key=household, reverse=True, limit=5))
    if baskets:
        basket = baskets[0]["basket_id"]
        lines = list(lake.table("invoices").read(where=f"basket_id = {basket}"))
        columns = ("product_id", "quantity", "sales_value", "department", "category", "income")
        show(f"invoices: basket {basket}", lines[:LINES], columns)
        if len(lines) > LINES:
            rest = f'sluice read invoices --where "basket_id = {basket}"'
            say(f"{LINES} of its {len(lines)} lines; all: {rest}")
    show(f"baskets: the last five of household {household}", baskets)


def _leaders(lake: Lake, department: str) -> list[dict[str, Any]]:
    """Show the first three, with their names."""
    where = f"department = '{department}' and rank <= 3"
    rows = sorted(lake.table("top_products").read(where=where), key=lambda row: int(row["rank"]))
    products = lake.table("products")
    return [{**row, "product": _name(products, row["product_id"])} for row in rows]


def _name(products: KeyedTable | JoinedTable, product: int) -> str:
    row = products.get(product)
    return str(row["product_type"]) if row else ""


def quality(project: Project) -> None:
    """Show how many rows each source accepted and quarantined, and the report's place."""
    rows = [
        {"source": state.table, "rows": state.rows, "quarantined": state.quarantined}
        for state in status(project)
        if state.kind == "source"
    ]
    show("quality", rows)
    say(f"quality report: {publish(project)}")


def quarantined(lake: Lake, source: str) -> None:
    """Show the quarantined rows of a source, whole, with their reasons."""
    rows = [
        {"reason": row["reason"], "row": row["raw"]}
        for row in lake.table(f"{source}__quarantine").read()
    ]
    show(f"{source}__quarantine", sorted(rows, key=lambda row: str(row["reason"])))
    say(f"`sluice read {source}__quarantine` shows them with file, batch and run")


def replayed(project: Project, source: str) -> list[BatchReport]:
    """Replay a source's quarantined intervals, and advance the views over it."""
    graph, run = project.graph, Run("replay")
    table = graph.table(source)
    above = [t for t in graph.tables.values() if t.is_view and table in graph.ancestors(t.id)]
    intervals = to_replay(project, table)

    def work(spark: Spark) -> list[BatchReport]:
        done = list(replay(spark, project, table, intervals, run))
        return [*done, *(report for t in above for report in advance(spark, project, t, run))]

    return with_spark(project.spark, work)


def committed(reports: Iterable[BatchReport]) -> None:
    """Show the changes of batches in each shown table."""
    rows = [
        {"table": r.table, "inserted": r.inserted, "updated": r.updated, "deleted": r.deleted}
        for r in reports
        if r.outcome == "committed" and "__" not in r.table
    ]
    show("what came of it", rows)


def versions(lake: Lake) -> dict[str, int]:
    """Return the versions of the tables whose changes will be shown."""
    return {name: Changelog.open(lake, name).snapshot.version for name in CHANGED}


def correction(done: Correction) -> None:
    """Show the corrected delivery."""
    raised = ", ".join(str(product) for product in done.raised)
    say(
        f"delivered again: basket {done.basket_id} of household {done.household_id} is gone "
        f"({done.dropped} lines), products {raised} of {CORRECTED_DEPARTMENT} cost ten times more"
    )


def changed(lake: Lake, before: Mapping[str, int]) -> None:
    """Show the rows that changed since then."""
    for name, version in before.items():
        log = Changelog.open(lake, name)
        rows = by_rank(log.rows(from_version=version + 1))
        shown = [_signed(row) for row in rows[: _whole(rows, SHOWN)]]
        title = f"{name}: {len(rows)} rows of its changelog since version {version}"
        show(title, shown)
        if len(rows) > len(shown):
            command = f"sluice changes {name} --from-version {version + 1}"
            say(f"... and {len(rows) - len(shown)} more: {command}")


def _whole(rows: Sequence[Mapping[str, Any]], most: int) -> int:
    """Return as many rows as possible without splitting an update."""
    cut = min(most, len(rows))
    return cut - (cut > 0 and rows[cut - 1][CHANGE_TYPE] == "update_preimage")


def by_rank(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort by rank, an update's old row before its new one; keep the order without ranks."""
    changes: list[list[dict[str, Any]]] = []
    for row in rows:
        if changes and changes[-1][-1][CHANGE_TYPE] == "update_preimage":
            changes[-1].append(row)
        else:
            changes.append([row])
    changes.sort(key=lambda change: change[-1].get("rank") or 0)
    return [row for change in changes for row in change]


def verified(project: Project) -> bool:
    """Compare computed tables with their recomputes; return True if all are equal."""
    graph = project.graph
    computed = [table for table in graph.tables.values() if nodes_of(table, graph)]

    def work(spark: Any) -> list[Verification]:
        return [verdict for table in computed for verdict in verify(spark, project, table)]

    verdicts = with_spark(project.spark, work)
    rows = [
        {
            "table": verdict.table,
            "version": verdict.version,
            "rows": verdict.rows,
            "verdict": "equal" if verdict.is_equal else "DIFFERS",
        }
        for verdict in verdicts
        if "__" not in verdict.table or not verdict.is_equal
    ]
    show("", rows)
    say(
        "A source with a key must equal the latest row of each key over all deliveries; "
        "one without a key equals its deliveries."
    )
    return all(verdict.is_equal for verdict in verdicts)


def times(tasks: Sequence[RunOfTask], order: Sequence[str]) -> None:
    """Show the time of each task, over the runs in which it had work."""
    worked: dict[str, list[float]] = defaultdict(list)
    for task in tasks:
        if task.state == "success":
            worked[task.task].append(task.seconds)
    rows = [
        {
            "task": name,
            "ran": len(worked[name]),
            "skipped": sum(task.task == name and task.state == "skipped" for task in tasks),
            "median s": round(median(worked[name]), 1) if worked[name] else None,
            "longest s": round(max(worked[name]), 1) if worked[name] else None,
        }
        for name in order
    ]
    show("tasks (skipped: nothing was new)", rows)


def summary(laps: Mapping[str, float], memory: str, home: Path) -> None:
    """Show time and memory."""
    chapter("In all")
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in laps.items())
    console.print(f"{sum(laps.values()):.0f} s ({parts})")
    console.print(f"most memory held: {memory}")
    say(f"`make up` shows the runs in Airflow's UI; logs are in {home}/logs")


def show(title: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Print rows as a table."""
    rows = list(rows)
    names = columns or (list(rows[0]) if rows else ["(no rows)"])
    print_table(names, [[row.get(name) for name in names] for row in rows], title)


SIGNS = {"insert": "+", "delete": "-", "update_preimage": "~ was", "update_postimage": "~ is"}


def _signed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a change with a sign instead of its type, and without its version."""
    sign = SIGNS[row.pop(CHANGE_TYPE)]
    row.pop(COMMIT_VERSION)
    return {"": sign, **row}
