"""The page of a top-k: the rankings that are worth a look, drawn as bars.

If there are many partitions, it shows those with the largest leaders. A ranking per window shows
its newest window. Each row leads to its explanation, if texts can name it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sluice.declare.table import Table
from sluice.declare.table_spec import WINDOW
from sluice.kinds.topk.reader import Ranking, each_rank
from sluice.language.names import Row
from sluice.pages import Address, Bar, Bars, Cards, Chapter, Text
from sluice.read.lake import Lake

SHOWN = 6
WhyOptions = Sequence[tuple[str, str]]  # that name a row
Group = tuple[tuple[Any, ...], list[tuple[int, Row]]]  # a partition, and its rows with their ranks


def chapters(lake: Lake, table: Table, why: Address) -> Iterator[Chapter]:
    """Yield the rankings that are worth a look."""
    ranking = Ranking.open(lake, table.id)
    order = ranking.spec.order_by
    first = order[0].expression.plain_column if order else None
    measure = first if first in ranking.table.snapshot.visible else ""
    found = [(key, list(each_rank(ranks))) for key, ranks in ranking.partitions(_newest(ranking))]
    cards = list(leaders(ranking, found, measure, why))
    if cards:
        by = Text(f"by {measure}" if measure else "", "soft small")
        few = [f"{SHOWN} of {len(found):,} groups, those with the largest leaders; all: "]
        every = Text(f"sluice top {table.id}", "mono")
        said = Text([*few, every], "line soft small") if len(found) > SHOWN else ""
        yield Chapter(["Leaders ", by], [said, Cards(cards)])


def leaders(ranking: Ranking, found: Sequence[Group], measure: str, why: Address) -> Iterator[Bars]:
    """Yield the rankings of the leading partitions or windows among these."""
    largest = sorted(found, key=lambda one: _size(one[1][0][1], measure), reverse=True)[:SHOWN]
    hidden = {*ranking.partition_columns, ranking.spec.rank, measure, *WINDOW}
    for key, rows in sorted(largest, key=lambda one: str(one[0])):
        most = max(abs(_size(row, measure)) for _, row in rows)
        bars = []
        for rank, row in rows:
            number = _number(row.get(measure))
            share = round(abs(number) / most, 4) if number is not None and most else None
            label = _label(row, hidden, _names(ranking, rank, row), why)
            bars.append(Bar(rank, label, _text(row.get(measure) if measure else ""), share))
        yield Bars(", ".join(_text(value) for value in key) or "all", bars)


def _newest(ranking: Ranking) -> dict[str, Any]:
    """Return the newest window, if there is a ranking per window."""
    (time, *_) = (c for c in (*ranking.partition_columns, "") if c in (*WINDOW, ""))
    if not time:
        return {}
    starts = (row[time] for row in ranking.table.read(columns=[time]))
    newest = max((start for start in starts if start is not None), default=None)
    return {time: newest} if newest is not None else {}


def _size(row: Row, measure: str) -> float:
    return _number(row.get(measure)) or 0.0


def _label(row: Row, hidden: Collection[str | None], names: WhyOptions, why: Address) -> Text:
    """Return the first other column of a row, as a link to its explanation if texts can name it."""
    said = next((_plain(row[column]) for column in row if column not in hidden), "")
    if not names:
        return Text(said, title=said)
    return Text(said or "this row", "", why(names), f"{said}: why this row is here")


def _names(ranking: Ranking, rank: int, row: Row) -> WhyOptions:
    """Return the row's key, or its place if the key is hidden and no other row shares the place."""
    table, spec = ranking.table, ranking.spec
    is_keyed = table.key.names == table.identity
    columns = table.key.names if is_keyed else ranking.partition_columns
    if any(row[name] is None for name in columns):
        return ()
    texts = {name: _plain(row[name]) for name in columns}
    if is_keyed:
        return tuple(("key", text) for text in texts.values())
    if not spec.rank or spec.function != "row_number":
        return ()
    return (*(("partition", f"{name}={text}") for name, text in texts.items()), ("rank", str(rank)))


def _plain(value: Any) -> str:
    """Return a value as a command line takes it."""
    return value.isoformat() if isinstance(value, date) else "null" if value is None else str(value)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else None


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, date):
        return value.isoformat()
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return f"{value:,}" if is_number else "–" if value is None else str(value)
