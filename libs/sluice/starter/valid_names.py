"""Names that may be declared, made from those of files and of their columns."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count

from sluice.language.names import LONGEST, NAME, RESERVED_PREFIX

# Word boundaries in CamelCase; the small s of `CDs` begins no word.
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
ROOM = 10  # for the number of a name


def names(written: str, default: str) -> Iterator[str]:
    """Yield names in snake case for what is written: `Miles per Gallon`, then numbered ones.

    `default`: the first word of a name that would not begin with a letter.
    """
    plain = unicodedata.normalize("NFKD", WORDS.sub("_", written)).encode("ascii", "ignore")
    name = re.sub(r"[^a-z0-9]+", "_", plain.decode().lower()).strip("_")
    name = name if name[:1].isalpha() else f"{default}_{name}".rstrip("_")
    name = name[: LONGEST - ROOM]
    yield name
    yield from (f"{name}_{nth}" for nth in count(2))


def columns_of(written: Iterable[str]) -> dict[str, str]:
    """Return a file's columns by the names that are declared for them, in the file's order.

    Columns whose names differ only in case are left out, because readers confuse them.
    """
    written = list(written)
    alike = Counter(name.lower() for name in written)
    able = [n for n in written if alike[n.lower()] == 1 and _can_be_named(n)]
    taken = {name for name in able if NAME.fullmatch(name)}
    found: dict[str, str] = {}
    for name in able:
        if name in taken:
            found[name] = name
            continue
        own = next(n for n in names(name, "column") if n not in taken and n not in found)
        found[own] = name
    return found


def _can_be_named(written: str) -> bool:
    return written.isprintable() and not written.lower().startswith(RESERVED_PREFIX)
