"""Tables without a terminal are the ones that rich draws."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.language.names import Row
from sluice.terminal import output
from sluice.terminal.output import Format, draw, table_of, write_rows

EARLY = datetime(1900, 1, 1)  # noqa: DTZ001 - Hypothesis wants it without a zone
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=True),
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "[red]x[/red]",
            ":smile:",
            "京都",
            "e\u0301",
            "a\tb",
            "a\nb",
            "\u200b",
            "👩‍👩‍👧",
            " x ",
        ]
    ),
    st.datetimes(min_value=EARLY, timezones=st.just(UTC)),
    st.lists(st.text(max_size=3), max_size=2),
)


def by_rich(rows: Sequence[Row], columns: Sequence[str]) -> str:
    with redirect_stdout(StringIO()) as out:
        draw(table_of(rows, columns))
    return out.getvalue()


def written(rows: Sequence[Row], columns: Sequence[str]) -> str:
    with redirect_stdout(StringIO()) as out:
        write_rows(rows, columns, Format.TABLE)
    return out.getvalue()


@pytest.mark.parametrize("columns", [("id", "name"), ("[b]id[/b]", "name"), ("名", ":smile:")])
@given(values=st.lists(st.tuples(VALUES, VALUES), max_size=5))
def test_any_table_is_the_one_of_rich(
    columns: Sequence[str], values: list[tuple[Any, Any]]
) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in values]
    assert written(rows, columns) == by_rich(rows, columns)


def test_ordinary_rows_cost_no_drawing_by_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"shop": "京都", "sold": Decimal("1.50"), "day": date(2024, 1, 2), "gone": None}] * 3
    expected = by_rich(rows, list(rows[0]))
    monkeypatch.setattr("sluice.terminal.output.draw", None)
    assert written(rows, list(rows[0])) == expected


@pytest.mark.parametrize("text", ["a\nb", "a\tb", "\x1b[31mred", "\u200b"])
def test_texts_of_several_lines_or_without_a_width_are_left_to_rich(text: str) -> None:
    assert output.lines(["name"], [[text]], [False]) is None
