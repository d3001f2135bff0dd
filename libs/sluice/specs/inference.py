"""The type of an expression, as far as it can be told without Spark; '' where it can't."""

from collections.abc import Mapping

from sluice.specs import syntax


def infer(sql: str, columns: Mapping[str, str], joined: Mapping[str, Mapping[str, str]]) -> str:
    """The type of checked SQL over these columns."""
    first, _, second = sql.replace("`", "").partition(".")
    if second and first in joined:
        return joined[first].get(second, "")
    return columns.get(sql.replace("`", ""), "")


def aggregate_type(aggregate: object, argument: str) -> str:
    """The type of an aggregate over an argument of that type."""
    return ""
