"""Names: rules for those that users choose, and suggestions for unknown ones."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

Row = dict[str, Any]

INTERVAL = "_sluice_interval"  # start of the interval that delivered a row; in quarantine, too
ID = "_sluice_id"  # identity of a delivered row within its interval
BATCH = "_sluice_batch"  # number of the batch that looked a row's values up
CARRIED = "_sluice_key_"  # prefix of a view's columns that are an input's key
HIDDEN_TYPES = {INTERVAL: "TIMESTAMP", ID: "STRING", BATCH: "BIGINT"}

FROM, TO, CURRENT = COLUMNS = ("valid_from", "valid_to", "is_current")  # of a history

# Columns of Delta's change feed, and which of its rows were added or removed.
CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
OF_FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)  # none of the table's own
COMES = ("insert", "update_postimage")
GOES = ("delete", "update_preimage")

STATE = "state"  # state of a kind beyond the visible rows
DELIVERIES = "deliveries"  # every delivered row, by interval
INTERVALS = "intervals"  # one row per delivery
QUARANTINE = "quarantine"  # delivered rows that could not be used
ARRIVALS = "arrivals"  # what a stream has read, and when
FORGOTTEN = "forgotten"  # subjects whose rows are withheld, as salted hashes
FORGETTING = "forgetting"  # subjects of an erasure that has not ended, in files
NOTES = (QUARANTINE, INTERVALS, ARRIVALS, FORGOTTEN)  # tables without a position
MARK = "__"
REBUILT = "__rebuild"  # folder of a lake in which sources are read again
QUALITY = "__quality"  # folder of a lake with results, reports and counts
ENVIRONMENTS = "__env"  # folder of a lake with the lakes of its environments
DROPPED = "__dropped"  # folder of a lake with tables that may still be brought back
PREVIEWS = "__preview"  # folder of a lake with the overlays of previews
STORE = "__store"  # folder of a lake with what was found out about its store


def internal(name: str, suffix: str) -> str:
    """Return the name or id of an internal table of that one."""
    return f"{name}{MARK}{suffix}"


def rename_id(name: str, old: str, new: str) -> str:
    """Return the name or id of a table, or of its internal table, after `old` became `new`."""
    return new + name[len(old) :] if declared_id(name) == old else name


def declared_id(name: str) -> str:
    """Return the name or id of the declared table that this one is or belongs to."""
    return name.partition(MARK)[0]


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
