"""Regular expressions as Java has them: reports of wrong ones, and that Java agrees."""

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from sluice.gate.review import problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RIGHT = (
    "",
    "^[A-Z]{2}-\\d{4,}$",
    "[\\w-.]+@[\\w-.]+\\.[a-z]{2,}",
    "[]a]",
    "[^]]",
    "[a-z&&[^aeiou]]+",
    "[a[bc]d]",
    "\\p{Alpha}+\\p{IsLatin}\\pL",
    "[\\p{Lu}_]+",
    "\\Q[not a class\\E+",
    "(?<year>\\d{4})-\\k<year>",
    "(?<=a|bcd)x(?<!y)",
    "a(?i)b(?-i)c(?s:.)",
    "a++b*+c?+(?>d|e)",
    "\\h+\\R?\\z",
    "\\x{1F600}\\u00e9\\x41\\t\\0101",
    "\\N{LATIN SMALL LETTER A}",
    "(a)\\1",
    "[\\d\\s]",
    "a}b]",
    "\\_\\-\\/\\é",
    "été|日本",
)
WRONG = (
    "(",
    ")",
    "a)b",
    "[a-",
    "[[]",
    "[z-a]",
    "*a",
    "a**",
    "a{2",
    "{",
    "x{,3}",
    "a{3,2}",
    "(?P<year>x)",
    "(?P=year)",
    "(?#note)x",
    "(a)?(?(1)b|c)",
    "(?a)x",
    "(?z:x)",
    "\\y",
    "a\\",
    "\\k<gone>",
    "(?<1x>a)",
)


@pytest.mark.parametrize("pattern", RIGHT)
def test_a_right_pattern_passes(pattern: str) -> None:
    assert problem(pattern) == ""


@pytest.mark.parametrize("pattern", WRONG)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    assert problem(pattern).startswith(f"{pattern!r} is not a regular expression: ")


def test_a_difference_from_python_is_reported_in_javas_words() -> None:
    assert problem("(?P<year>x)").endswith("named by (?<name>...) and referenced by \\k<name>")
    assert problem("a{x").endswith("a brace that counts nothing is written \\{")


@pytest.mark.usefixtures("real_spark")
def test_java_agrees(spark: "SparkSession") -> None:
    java = spark._jvm.java.util.regex.Pattern  # type: ignore[union-attr]

    def takes(pattern: str) -> bool:
        try:
            java.compile(pattern)
        except PySparkException:
            return False
        return True

    assert [p for p in RIGHT if not takes(p)] == []
    assert [p for p in WRONG if takes(p)] == []
