"""Its block on the page of a table."""

from tests.kinds.throwaway.reader import highest

from sluice.serving.lake import Lake
from sluice.serving.rows import Row
from sluice.specs.table import Table

TEMPLATE = "page.html.j2"


def shown(lake: Lake, table: Table) -> list[Row]:
    return [highest(lake, table.id)]
