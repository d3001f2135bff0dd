"""Values of Parquet arrive in the declared types by docs/values.md, or their rows do not."""

import math
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files.chance import IS_DEEP, read_here, seeds
from tests.files.files import Files
from tests.files.stored import KINDS, Columns, Stored, columns, value, values
from tests.files.strict import NotTaken

EACH, DEEP_EACH, HERE_SHARE = 12, 100, 0.07
LOST = object()


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_values_by_chance_are_converted(files: Files, kind: str, is_nested: bool) -> None:
    for seed in seeds():
        made = list(values(Random(seed), columns(kind, is_nested), DEEP_EACH if IS_DEEP else EACH))
        assert disagreements(files, made, is_nested) == [], f"seed {seed}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_every_value_by_chance_is_converted_without_spark_as_the_page_says(
    tmp_path: Path, kind: str, is_nested: bool
) -> None:
    for seed in seeds():
        chance = Random(seed)
        made = list(values(chance, columns(kind, is_nested), EACH))
        made = made if IS_DEEP else [one for one in made if chance.random() < HERE_SHARE]
        told = read_here(tmp_path, made, partial(disagreements, is_nested=is_nested))
        assert told.wrong == [], f"seed {seed}"
        assert is_nested or told.read > told.refused  # nested ones only of the declared type


def disagreements(files: Files, made: list[Stored], is_nested: bool) -> list[Any]:
    """Values that were read otherwise than the strict reader reads them, twenty at most."""
    of_kind = {one.column: (one.type, one.declared) for one in made}
    pq.write_table(written(of_kind, made, is_nested), files.folder / "a.parquet")
    types = {c: f"ARRAY<{t}>" if is_nested else t for c, (_, t) in of_kind.items()}
    declared = ", ".join(f"{c} {type_}" for c, type_ in types.items())
    found = files.read("parquet", f"i INT, {declared}").rows.orderBy("i").toArrow()
    reasons = found["_sluice_reason"].to_pylist()
    assert found["i"].to_pylist() == list(range(len(made)))
    of = {c: found[c].to_pylist() for c in of_kind}
    read = ((one, of[one.column][i], reasons[i]) for i, one in enumerate(made))
    agree = _agree_nested if is_nested else _agree
    wrong = [(o, r or v, strict(o)) for o, v, r in read if not agree(o, v, r)]
    return wrong[:20]


def written(of: Columns, made: list[Stored], is_nested: bool) -> pa.Table:
    """A row for each value, which is null in all columns but its own."""
    cells: dict[str, list[Any]] = {name: [None] * len(made) for name in of}
    for i, one in enumerate(made):
        cells[one.column][i] = [one.value] if is_nested else one.value
    types = {name: pa.list_(type_) if is_nested else type_ for name, (type_, _) in of.items()}
    arrays = {name: pa.array(cells[name], types[name]) for name in of}
    return pa.table({"i": pa.array(range(len(made)), pa.int32()), **arrays})


def strict(one: Stored) -> Any:
    try:
        return value(one)
    except NotTaken:
        return LOST


def _agree_nested(one: Stored, found: Any, reason: str | None) -> bool:
    """Nested values must look the same in both types, so more of them go to quarantine."""
    if reason is not None:
        return bool(found is None and reason.startswith(f"column {one.column}: "))
    return _agree(one, found[0], None)


def _agree(one: Stored, found: Any, reason: str | None) -> bool:
    wanted = strict(one)
    if wanted is LOST:
        said = reason is not None and reason.startswith(f"column {one.column}: ")
        return found is None and said and str(reason).endswith(f" is not a valid {one.declared}")
    if reason is not None or type(found) is not type(wanted):
        return False
    if isinstance(wanted, float):
        if math.isnan(wanted) or math.isnan(found):
            return math.isnan(wanted) and math.isnan(found)
        return found == wanted and math.copysign(1, found) == math.copysign(1, wanted)
    if isinstance(one.value, float) and isinstance(found, Decimal) and abs(one.value) >= 2**53:
        return float(found) == one.value  # the digits beyond a DOUBLE's are anyone's choice
    return bool(found == wanted)
