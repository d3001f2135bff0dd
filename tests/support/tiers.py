"""Tiers of tests, by what they need.

The quick tier needs Python; `tests/whole` in it needs one Java, one Airflow and one store besides.
A test is deep if one of these fixtures is among those that it requests, directly or by another.
"""

from typing import Literal

import pytest

DEEP = {
    "real_spark": "a Spark for the run",
    "own_spark": "a Java, or an application of Spark, that the test starts itself",
    "broker": "a broker of Kafka's protocol",
    "store": "an object store",
    "stack": "an Airflow that runs",
    "browser": "a browser",
    "long": "minutes of histories or installations",
}


def fixtures_of(item: pytest.Item) -> frozenset[str]:
    """The names of all fixtures of a test, those of fixtures included."""
    return frozenset(getattr(item, "fixturenames", ()))


def tier_of(item: pytest.Item) -> Literal["quick", "deep"]:
    """The tier that a test belongs to."""
    return "quick" if fixtures_of(item).isdisjoint(DEEP) else "deep"


def needs_spark(item: pytest.Item) -> bool:
    """True if the session of a test is Spark's."""
    return not fixtures_of(item).isdisjoint({"real_spark", "whole_spark"})
