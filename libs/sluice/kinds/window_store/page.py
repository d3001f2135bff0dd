"""The newest rows of a window store on Airflow's page."""

from collections.abc import Mapping
from typing import Any

from sluice.declare.table import Table
from sluice.kinds.window_store.reader import window
from sluice.read.lake import Lake

TEMPLATE = "page.html.j2"
NEWEST = 12


def shown(lake: Lake, table: Table) -> tuple[Mapping[str, Any], ...]:
    """Return the newest rows."""
    return tuple(window(lake, table.id).all(reverse=True, limit=NEWEST))
