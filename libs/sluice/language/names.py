"""Names: rules for those that users choose, and suggestions for unknown ones."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from sluice.language.internal import MARK

NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED_PREFIX = "_sluice"
SHOWN = 40
LONGEST = 100  # tables and their internal ones are folders, whose names file systems limit


def check_name(name: str) -> str:
    """Return the name if a user may choose it."""
    if name.startswith(RESERVED_PREFIX):
        raise ValueError(f"{name!r}: names starting with {RESERVED_PREFIX} are reserved")
    if not NAME.fullmatch(name):
        rule = "begin with a letter, then use" if name.startswith("_") else "use"
        raise ValueError(f"{name!r} is not a name: {rule} lower case letters, digits and _")
    if len(name) > LONGEST:
        raise ValueError(f"a name of {len(name)} characters is longer than {LONGEST}")
    return name


def check_table_name(name: str) -> str:
    """Return the name, if a table or a pipeline may have it."""
    if MARK in check_name(name):
        raise ValueError(f"{name!r}: `__` is reserved for internal tables")
    return name


WRITTEN_NAME = {"type": "string", "pattern": f"^{NAME.pattern}$"}  # in JSON Schemas
Name = Annotated[str, AfterValidator(check_name), WithJsonSchema(WRITTEN_NAME)]


def near(word: str, known: Iterable[str]) -> str:
    """Return the known name that `word` resembles most, or ''."""
    by_lower = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else ""


class UnknownName(str):
    """A mistake that may be none if not all names are known."""

    __slots__ = ()


def unknown(kind: str, word: str, known: Iterable[str], plural: str = "") -> UnknownName:
    """Return `unknown column 'salse'; did you mean 'sales'? columns are: sales, units`."""
    known = list(known)
    match = near(word, known)
    guess = f"; did you mean {match!r}?" if match else ";"
    named = f"{plural or kind + 's'} are: {listing(known)}"
    return UnknownName(f"unknown {kind} {word!r}{guess} {named}")


def listing(names: Iterable[str]) -> str:
    """Return `a, b, c`, shortened if it is too long to read."""
    names = list(names)
    more = f", ... ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more if names else "(none)"
