"""Sort keys from a user's Python function, whose results become a normal column.

Spark's workers call it row by row with plain Python values, None for null. Its annotation is the
type of its results.
"""

from collections.abc import Mapping
from datetime import date, datetime
from types import FunctionType, NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

from pyspark.sql import Column
from pyspark.sql import functions as F

from sluice.engine.query.imported import imported
from sluice.errors import ConfigError
from sluice.kinds.topk.rank_key import RankKey
from sluice.language.names import listing

TYPES: Mapping[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    date: "DATE",
    datetime: "TIMESTAMP",
}


def sort_value(key: RankKey, where: str) -> Column:
    """Return the results of the key's function.

    Raises ConfigError, beginning with `where`, if the function can't be used.
    """
    place = f"{where}: {key.expression.text}"
    function = imported(key.function, place)
    module = key.function.partition(":")[0]
    if not isinstance(function, FunctionType) or function.__module__ != module:
        raise ConfigError([f"{place}: that is not a function defined in {module}"])
    arguments = [F.expr(argument.sql) for argument in key.arguments]
    return F.udf(function, _type(function, place), useArrow=True)(*arguments)


def _type(function: FunctionType, place: str) -> str:
    """Return the Spark SQL type of the function's annotated result."""
    said = get_type_hints(function).get("return")
    options = get_args(said) if get_origin(said) in (Union, UnionType) else (said,)
    found = [TYPES.get(option, "") for option in options if option is not NoneType]
    if len(found) != 1 or not found[0]:
        known = listing([known.__name__ for known in TYPES])
        raise ConfigError(
            [f"{place}: annotate the function's return type: one of {known}, alone or with None"]
        )
    return found[0]
