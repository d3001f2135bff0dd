"""Upper and lower case, where Python's Unicode agrees with that of Spark's ICU.

Spark's is newer. Letters whose case is newer than Unicode 14 are left to it, and all planes except
the first and that of pictographs. The lower case of a capital sigma depends on its neighbours.
"""

import re

from sluice.interpreter.refusals import NotHere

_KNOWN = re.compile(
    "[\0-\u019a\u019c-\u0263\u0265-\u1c88\u1c8b-\ua7ca\uac00-\ud7a3\uf900-\ufffd"
    "\U0001f000-\U0001faff]*"
)
_EUROPEAN = re.compile("[\0-\u019a\u019c-\u0263\u0265-\u0294\u0296-\u058f]*")


def upper(value: str) -> str:
    """Return a text in upper case. Raises NotHere if Spark may see its letters differently."""
    return _checked(value, _KNOWN).upper()


def lower(value: str) -> str:
    """Return a text in lower case. Raises NotHere if Spark may see its letters differently."""
    return _checked(value, _EUROPEAN if "Σ" in value else _KNOWN).lower()


def capitals(value: str) -> str:
    """Return a text whose words between blanks begin with a capital. Raises NotHere likewise."""
    words = _checked(value, _EUROPEAN).split(" ")
    return " ".join(word.capitalize() for word in words)


def _checked(value: str, known: re.Pattern[str]) -> str:
    if not (value.isascii() or known.fullmatch(value)):
        raise NotHere("upper or lower case of rare letters")
    return value
