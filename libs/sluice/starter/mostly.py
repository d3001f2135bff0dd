"""Types that nearly all values of a text column have, and the few values that don't fit.

A text where a number or a time should be makes a reader take the whole column for text. A delivery
sends only the row of such a text to quarantine, so the column is declared by the other values.
"""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NEARLY = 0.9  # share of the values
SHOWN = 30  # characters of a value
TIME = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
FORMS: Mapping[str, Sequence[tuple[str, pa.DataType]]] = {  # of Spark's types, the narrowest first
    "BIGINT": [(r"^[+-]?\d{1,18}$", pa.int64())],
    "DOUBLE": [(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", pa.float64())],
    "BOOLEAN": [(r"^(?i:true|false)$", pa.bool_())],
    "DATE": [(r"^\d{4}-\d\d-\d\d$", pa.date32())],
    "TIMESTAMP": [(f"{TIME}$", NAIVE), (rf"{TIME}(Z|[+-]\d\d:?\d\d)$", ZONED)],
}
TIMES = ("DATE", "TIMESTAMP")
PADDED = r"^[+-]?0\d+$"
Place = Callable[[int], str]  # the words for the nth row


@dataclass(frozen=True)
class Narrowed:
    """Rows with the types that nearly all values have; values that don't fit are null.

    `misfits`: the number of these by column. `notes`: the odd values, in words.
    """

    rows: pa.Table
    misfits: Mapping[str, int]
    notes: tuple[str, ...]


def narrow(rows: pa.Table, place: Place, only_times: Container[str] = ()) -> Narrowed:
    """Return rows with narrower types. `only_times`: columns whose texts are no numbers."""
    notes, misfits = list[str](), dict[str, int]()
    for nth, name in enumerate(rows.column_names):
        column = rows[name]
        if pa.types.is_binary(column.type):
            column, found = _decoded(name, column, place)
            notes += found
        if pa.types.is_string(column.type):
            forms = TIMES if name in only_times else tuple(FORMS)
            nulls = column.null_count
            column, found = _narrowed(name, column, place, forms)
            notes += found
            misfits[name] = column.null_count - nulls
        rows = rows.set_column(nth, name, column)
    return Narrowed(rows, misfits, tuple(notes))


def _decoded(name: str, column: pa.ChunkedArray, place: Place) -> tuple[pa.ChunkedArray, list[str]]:
    """Return bytes as text, if most of them are; a reader takes a column for bytes by one value."""
    values = column.to_pylist()
    texts = [None if v is None else v.decode("utf-8", "replace") for v in values]
    odd = [n for n, v in enumerate(texts) if v is not None and "\ufffd" in v]
    if not odd or len(odd) > (1 - NEARLY) * len(values):
        is_text = not odd
        return (pa.chunked_array([texts], pa.string()), []) if is_text else (column, [])
    note = f"{name}: {_count(len(odd), len(values))} not UTF-8, such as that in {place(odd[0])}"
    return pa.chunked_array([texts], pa.string()), [note]


def _narrowed(
    name: str, column: pa.ChunkedArray, place: Place, forms: Sequence[str]
) -> tuple[pa.ChunkedArray, list[str]]:
    total = len(column) - column.null_count
    if not total or True in pc.match_substring_regex(column, PADDED).unique().to_pylist():
        return column, []
    typed = {form: _typed(column, form) for form in forms}
    fits = {form: len(found) - found.null_count for form, found in typed.items()}
    best = max(forms, key=lambda form: fits[form])
    most, found = fits[best], typed[best]
    if most == total or most < total / 2:
        return (found if most == total else column), []
    odd = pc.and_(pc.is_valid(column), pc.is_null(found)).to_pylist().index(True)
    what = f"such as {_show(column[odd].as_py())} in {place(odd)}"
    if most < NEARLY * total:
        return column, [f"{name}: {most:,} of {total:,} values are {best}, others not, {what}"]
    return found, [f"{name}: {_count(total - most, total)} no {best}, {what}"]


def _typed(column: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    """Return the values in a form's type; null for those of another form, or impossible ones."""
    found = [_cast(column, pattern, type_) for pattern, type_ in FORMS[form]]
    return found[0] if len(found) == 1 else pc.coalesce(found[0], found[1].cast(NAIVE))


def _cast(column: pa.ChunkedArray, pattern: str, type_: pa.DataType) -> pa.ChunkedArray:
    fits = pc.fill_null(pc.match_substring_regex(column, pattern), fill_value=False)
    kept = pc.if_else(fits, column, pa.scalar(None, pa.string()))
    try:
        return kept.cast(type_)
    except pa.ArrowInvalid:
        known = {text: _value(text, type_) for text in kept.unique().to_pylist()}
        return pa.chunked_array([[known[text] for text in kept.to_pylist()]], type_)


def _value(text: str | None, type_: pa.DataType) -> Any:
    try:
        return pa.scalar(text, pa.string()).cast(type_).as_py()
    except pa.ArrowInvalid:
        return None


def _count(few: int, total: int) -> str:
    return f"{few:,} of {total:,} values {'is' if few == 1 else 'are'}"


def _show(value: str) -> str:
    cut = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    return json.dumps(cut, ensure_ascii=False)
