"""What may not stand in an expression, in whatever disguise, is refused with a reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.language.expression import Aggregate, Expression

Refusal = Callable[..., str]

LINES = (Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8").split("\n")
HOSTILE = [line.split("\t") for line in LINES if "\t" in line]


@pytest.mark.parametrize(("text", "reason"), HOSTILE)
def test_it_is_refused_with_its_reason(refusal: Refusal, text: str, reason: str) -> None:
    said = refusal(Expression.parse, text)
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize("text", [text for text, reason in HOSTILE if "aggregate" not in reason])
def test_it_is_refused_inside_an_aggregate_too(refusal: Refusal, text: str) -> None:
    assert refusal(Aggregate.parse, f"sum({text})")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000 + "a" + ")" * 1_000,
        "(" * 30_000,
        "not " * 4_000 + "a",
        "- " * 4_000 + "a",
        "case when " * 2_000,
        "a\x00b",
        "'\x00'",
        "\x1b[31ma",
    ],
)
def test_what_is_too_deep_too_long_or_not_text_is_refused_without_a_trace(
    refusal: Refusal, text: str
) -> None:
    said = refusal(Expression.parse, text)
    assert len(said) < 400


def test_a_refusal_names_the_near_function_that_is_accepted(refusal: Refusal) -> None:
    said = refusal(Expression.parse, "uper(name)")
    assert said == (
        "the function 'uper' is not allowed; did you mean 'upper'? "
        "(scalar, deterministic ones of Spark are)"
    )
