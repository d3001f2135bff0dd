"""Names of columns as Spark parses them: parts between dots, perhaps in backquotes."""

import re

from sluice.interpreter.refusals import NotHere

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def split_name(text: str) -> tuple[str, ...]:
    """Return the parts of a name such as `a.`b c`.d`."""
    parts, at = [], 0
    while at <= len(text):
        found = _PART.match(text, at)
        if not found or (found.end() < len(text) and text[found.end()] != "."):
            raise NotHere(f"the name {text!r}")
        parts.append(found[2] if found[1] is None else found[1].replace("``", "`"))
        at = found.end() + 1
    return tuple(parts)
