"""The newest rows of a window store on Airflow's page."""

from collections.abc import Iterator

from sluice.declare.table import Table
from sluice.kinds.window_store.reader import window
from sluice.pages.elements import Address, Chapter
from sluice.pages.wording import data
from sluice.read.lake import Lake

NEWEST = 12


def chapters(lake: Lake, table: Table, why: Address) -> Iterator[Chapter]:
    """Yield the newest rows."""
    rows = list(window(lake, table.id).all(reverse=True, limit=NEWEST))
    if rows:
        yield Chapter("Newest windows", [data(rows, list(rows[0]))])
