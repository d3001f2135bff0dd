"""Its block on the page of a table."""

from tests.kinds.throwaway.reader import highest

from sluice.declare.table import Table
from sluice.read.lake import Lake
from sluice.read.ordered.rows import Row

TEMPLATE = "page.html.j2"


def shown(lake: Lake, table: Table) -> list[Row]:
    return [highest(lake, table.id)]
