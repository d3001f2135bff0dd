"""Spellings accepted for each type in any text: the only place of these rules.

A text is accepted if it matches its type's patterns, ignoring surrounding spaces and tabs, and its
value is within the type's bounds. Patterns mean the same in Java, RE2 and Python: no look-around,
no back-references, ASCII classes alone. Every reader of texts uses them:

- A number with an exponent is written out before it is matched against `exact`: `1.5e1` is `15.`.
- FLOAT and DOUBLE take the nearest binary fraction. These are out of bounds: a finite text that
  would become infinite, and a nonzero text that would become zero.
- Dates and times exist in the calendar, in years 1 to 9999, also in UTC; a local time exists in its
  zone, and is the earlier one of two.
- Base64 has a multiple of four characters.
- A locale lets a decimal be grouped: GROUPS_OF_COMMA if its point is a comma, else
  GROUPS_OF_POINT. Once its groups are removed and its comma is a point, it is as above.
"""

from dataclasses import dataclass

from sluice.language.typed.types import INTEGERS, Decimal, base_name

AROUND = " \t"
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
EXPONENT = "[eE]"
NOT_ZERO = "[^eE1-9]*[1-9].*"
NOT_FINITE = r"(?i:nan)|[+-]?(?i:inf|infinity)"
YES = "(?i:true|t|yes|y|1)"
NO = "(?i:false|f|no|n|0)"
DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
MIDNIGHT = r"[T ]00:00(:00(\.0+)?)?Z?"
SECONDS = r":[0-9]{2}(\.[0-9]{1,6}0*)?"
LOCAL = rf"{DAY}([T ][0-9]{{1,2}}:[0-9]{{2}}({SECONDS})?)?"
REGION = "[A-Za-z_]{1,40}(/[A-Za-z0-9_+-]{1,40}){1,3}"
ZONE = f" ?(Z|UTC|GMT|[+-][0-9]{{2}}(:?[0-9]{{2}})?|{REGION})"
INSTANT = f"{LOCAL}|{DAY}[T ][0-9]{{1,2}}:[0-9]{{2}}({SECONDS})?{ZONE}"
BASE64 = "[A-Za-z0-9+/]*([AEIMQUYcgkosw048]=|[AQgw]==)?"  # no bits are left over
GROUPS_OF_COMMA = (
    r"[+-]?[0-9]{1,3}([. '\u00a0\u202f\u2019][0-9]{3}){1,12}(,[0-9]*)?|[+-]?[0-9]*(,[0-9]*)?"
)
GROUPS_OF_POINT = r"[+-]?[0-9]{1,3}([,'\u2019][0-9]{3}){1,12}(\.[0-9]*)?|[+-]?[0-9]*(\.[0-9]*)?"


@dataclass(frozen=True)
class Spelling:
    """Accepted texts of a type: their shape and, for exact numbers, the written-out form."""

    shape: str
    exact: str = ""


def spelling(type_: str) -> Spelling:
    """Return the spelling of a scalar type that is not text itself."""
    if base_name(type_) in INTEGERS:
        return Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,2}})?", r"[+-]?[0-9]*(\.0*)?")
    if decimal := Decimal.of(type_):
        # No more digits than the type has, except zeros.
        exact = rf"[+-]?0*[0-9]{{0,{decimal.whole}}}(\.[0-9]{{0,{decimal.scale}}}0*)?"
        return Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,2}})?", exact)
    return _OTHERS[base_name(type_)]


_BINARY_FRACTION = Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,4}})?|{NOT_FINITE}")
_OTHERS = {
    "FLOAT": _BINARY_FRACTION,
    "DOUBLE": _BINARY_FRACTION,
    "BOOLEAN": Spelling(f"{YES}|{NO}"),
    "DATE": Spelling(f"{DAY}({MIDNIGHT})?"),
    "TIMESTAMP": Spelling(INSTANT),
    "TIMESTAMP_NTZ": Spelling(LOCAL),
    "BINARY": Spelling(BASE64),
}
