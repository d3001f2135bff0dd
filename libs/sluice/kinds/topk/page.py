"""A top-k's leaders as bars: a few partitions' rankings, drawn by the column of their order.

Of many partitions, those with the largest leaders are shown. Of a ranking per window, the newest
window is shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sluice.declare.table import Table
from sluice.kinds.topk.ranking import Ranking
from sluice.kinds.topk.spec import TopK
from sluice.read.lake import Lake

TEMPLATE = "page.html.j2"
SHOWN = 6
WINDOW = ("window_start", "window_end")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """One row of a ranking; `share` is its length relative to the longest bar.

    `names`: options of `sluice why` that name the row; none if texts can't.
    """

    rank: int
    label: str
    value: str
    share: float | None
    names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Leaders:
    """The ranking of one partition."""

    title: str
    measure: str
    bars: tuple[Bar, ...]


def shown(lake: Lake, table: Table) -> tuple[Leaders, ...]:
    """Return the rankings that are worth a look."""
    ranking = Ranking.open(lake, table.id)
    return tuple(leaders(ranking, ranking.spec))


def leaders(ranking: Ranking, spec: TopK) -> Iterator[Leaders]:
    """Yield the rankings of the leading partitions or windows."""
    columns = ranking.partition_columns
    found = [(key, list(_flat(ranks))) for key, ranks in ranking.partitions(_newest(ranking))]
    measure = _measure(spec, ranking)
    largest = sorted(found, key=lambda one: _size(one[1][0][1], measure), reverse=True)[:SHOWN]
    for key, rows in sorted(largest, key=lambda one: str(one[0])):
        title = ", ".join(_text(value) for value in key) or "all"
        bars = _bars(rows, measure, {*columns, spec.rank})
        named = (replace(b, names=_names(ranking, *r)) for b, r in zip(bars, rows, strict=True))
        yield Leaders(title, measure, tuple(named))


def _newest(ranking: Ranking) -> dict[str, Any]:
    """Return the newest window, if there is a ranking per window."""
    (time, *_) = (c for c in (*ranking.partition_columns, "") if c in (*WINDOW, ""))
    if not time:
        return {}
    starts = (row[time] for row in ranking.table.read(columns=[time]))
    newest = max((start for start in starts if start is not None), default=None)
    return {time: newest} if newest is not None else {}


def _flat(ranks: Mapping[int, Any]) -> Iterator[tuple[int, Row]]:
    for rank, tied in ranks.items():
        for row in tied if isinstance(tied, list) else [tied]:
            yield rank, row


def _measure(spec: TopK, ranking: Ranking) -> str:
    """Return the first column of the order, if it is visible; else ''."""
    column = spec.order_by[0].expression.plain_column if spec.order_by else None
    return column if column in ranking.table.snapshot.visible else ""


def _size(row: Row, measure: str) -> float:
    return _number(row.get(measure)) or 0.0


def _bars(rows: list[tuple[int, Row]], measure: str, hidden: set[Any]) -> Iterator[Bar]:
    most = max((abs(_size(row, measure)) for _, row in rows), default=0.0)
    for rank, row in rows:
        names = [c for c in row if c not in hidden and c != measure and c not in WINDOW]
        number = _number(row.get(measure))
        share = round(abs(number) / most, 4) if number is not None and most else None
        value = row.get(measure) if measure else ""
        yield Bar(rank, str(row[names[0]]) if names else "", _text(value), share)


def _names(ranking: Ranking, rank: int, row: Row) -> tuple[tuple[str, str], ...]:
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
    return value.isoformat() if isinstance(value, date) else str(value)


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
