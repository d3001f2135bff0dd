"""Every letter that is taken has the case that Spark's ICU gives it, also beside others."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sluice.delta.reading.local import to_arrow
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions.strings import capitals, lower, upper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS = {"upper": upper, "lower": lower, "initcap": capitals}
EVERY = [chr(n) for n in range(0x20000) if not 0xD800 <= n < 0xE000]
EUROPEAN = [c for c in EVERY[:0x590] if c.isalpha()]


def beside(letter: str) -> list[str]:
    """Texts in which a letter stands alone, within words, and around a sigma."""
    c = letter
    return [
        c,
        f"aß{c}bé",
        f"A{c}B {c}",
        f"AΣ{c}",
        f"A{c}Σ",
        f"A{c}Σ{c}B",
        f"{c}Σ",
        f"AΣ{c}B",
        f"'{c}-a",
    ]


def sentences(count: int) -> list[str]:
    chance = Random(17)
    letters = [*EUROPEAN, *("Σ" * 20), *(" " * 90), *"-'.,1_\t\n/&"]
    return ["".join(chance.choices(letters, k=chance.randint(1, 14))) for _ in range(count)]


def taken(function: Callable[[str], str], texts: Iterable[str]) -> dict[str, str]:
    """What a function says of the texts that it takes."""
    found = {}
    for text in texts:
        with suppress(UnsupportedLocally):
            found[text] = function(text)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_case_of_every_letter_that_is_taken_is_sparks(name: str, spark: "SparkSession") -> None:
    texts = [*EVERY, *(text for c in EVERY[:0x3000] for text in beside(c)), *sentences(5_000)]
    ours = taken(FUNCTIONS[name], texts)
    assert len(ours) > (10_000 if name == "initcap" else 100_000)
    rows = spark.createDataFrame(pa.table({"v": list(ours)})).selectExpr("v", f"{name}(v) AS s")
    found = {row["v"]: row["s"] for row in to_arrow(rows).to_pylist()}
    assert {v: (ours[v], s) for v, s in found.items() if ours[v] != s} == {}
    assert len(found) == len(ours)


@pytest.mark.parametrize("letter", ["\u019b", "\u1c8a", "\ua7cb", "\U00010d50"])
def test_letters_whose_case_is_younger_are_left_to_spark(letter: str) -> None:
    for function in FUNCTIONS.values():
        with pytest.raises(UnsupportedLocally, match="rare letters"):
            function(f"a{letter}")


def test_a_sigma_beside_other_scripts_is_left_to_spark() -> None:
    assert lower("ΟΔΟΣ ΣΑΣ") == "οδος σας"
    with pytest.raises(UnsupportedLocally, match="rare letters"):
        lower("Σ\u1acf")
