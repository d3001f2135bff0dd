"""Rows of one side without a match on the other; for an anti join, rows with one."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.engine.query.absence import Condition, Unmatched
from sluice.engine.query.operator import InputRows, Operator
from sluice.kinds.join.operator import SIDE, JoinedRows
from sluice.kinds.join.spec import EquiJoin


def conditions(spec: EquiJoin, found: Sequence[Condition]) -> Sequence[Condition]:
    """Return `where`, unless pairs that meet it remove rows."""
    return () if spec.type == "anti" else found


def unmatched(
    operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
) -> Iterator[Unmatched]:
    """Yield the rows of one side that the other side's wanted rows need, or must not match."""
    assert isinstance(operator, JoinedRows)
    spec, (left, right) = operator.spec, operator.shape.both
    for nth, ((which, side, table), (other, _, there)) in enumerate(((left, right), (right, left))):
        if table.id not in wanted:
            continue
        own = wanted[table.id].where(F.col(SIDE) == which)
        if spec.type == "anti" and which == "left":
            theirs = operator.opposite(prepared[there.id].where(F.col(SIDE) == other))
            mine = own.select(side.as_, *operator.group)
            met = theirs.join(mine, operator.met(), "left_semi").select(f"{spec.right.as_}.*")
            yield Unmatched(there.id, _text(operator), met, is_excluded=True)
        else:
            yield Unmatched(there.id, _text(operator), _needed(operator, own, there.id, nth))


def _needed(operator: JoinedRows, own: DataFrame, there: str, nth: int) -> DataFrame:
    """Return the shared values of rows, as the other side calls its columns."""
    known = operator.named(there)
    columns = known[-1 if nth == 0 else 0] if known else {}
    names = {on: column for column, on in columns.items()}
    return own.select(*[F.col(on).alias(names.get(on, on)) for on in operator.group]).distinct()


def _text(operator: JoinedRows) -> str:
    pairs = zip(operator.shape.on_as_written, operator.shape.pairs, strict=True)
    found = " and ".join(
        text if text == pair[1].text else f"{text} = {pair[1].text}" for text, pair in pairs
    )
    return f"on {found}"
