"""Its block on the page of a table."""

from tests.kinds.throwaway.reader import highest

from sluice.declare.table import Table
from sluice.pages.elements import Address, Chapter, Text
from sluice.read.lake import Lake


def chapters(lake: Lake, table: Table, why: Address) -> list[Chapter]:
    key = str(highest(lake, table.id)["id"])
    return [Chapter("The highest", [Text(key, href=why([("key", key)]))])]
