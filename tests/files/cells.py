"""Texts by chance that look like values: good ones, nearly good ones, and what grows of them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Self

NUMBERS = (
    *("0", "7", "-7", "+7", "007", "240.0", "240.5", "2.4e2", "1e3", "1E+2", "15e-1", ".5", "5."),
    *("-0", "-0.0", "1.", ".", "-", "", "1,5", "12,50", "1,234.56", "1 234", "1_000", "0x1F"),
    *("1.005", "0.001", "1.00001", "1.500", "2.3000000000000003", "9999.99", "9999.994", "99999"),
    *("127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "-2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e400", "-1e400"),
    *("1e39", "3.4028235e38", "3.4028236e38", "1e-46", "1e-400", "4.9e-324", "1e99", "1e-99"),
    *("1" * 40, "9" * 36 + ".99", "9" * 37, "1" * 30 + ".255", "0." + "3" * 38, "0." + "3" * 39),
    *("NaN", "nan", "+nan", "Infinity", "-Infinity", "inf", "+INF", "infinit", "1.5f", "1.5d"),
    *("16777217", "0.1", "1e22", "123456789.123456789", "1e5000", "1e05", "0e9", "0e-9", "1e"),
    *("\u0663", "１", "½", "$5", "5%", "--1", "+-1", "1-", " 5", "5\t", " ", "5 6", "null", "1e+"),
)  # fmt: skip
WORDS = ("true", "TRUE", "True", "t", "f", "yes", "No", "n", "0", "1", "on", "ja", "tru", "2", "")
DAYS = (
    *("2024-03-05", "2024-3-5", "2024-02-29", "2023-02-29", "2024-02-30", "2024-13-01", "20240305"),
    *("05.03.2024", "03/05/2024", "2024-03", "2024", "0000-01-01", "0001-01-01", "9999-12-31"),
    *("99999-01-01", "-2024-03-05", "today", "now", "epoch", "2024-03-05 garbage", "2024-03-05Tx"),
    *("2024-03-05T99:99", "2024-03-05 23:59:59", "2024-03-05T00:00:00", "2024-03-05 00:00"),
    *("2024-03-05T00:00:00.000Z", "2024-03-05T00:00:00+00:00", "1582-10-10", "2024-03-05T", ""),
)
TIMES = (
    *("10:00", "9:05", "10:00:00", "10:00:00.5", "10:00:00.123456", "10:00:00.1234567"),
    *(
        "10:00:00.123456000",
        "23:59:59.999999",
        "24:00",
        "24:00:00",
        "23:60",
        "10:00:60",
        "10",
        "T10",
    ),
    *("02:30:00", "10:00:", "10:00:00.", "1:2:3", "10:00 AM", "00:00", "99:99", "10.00"),
)
ZONES = (
    *("", "", "", "Z", " Z", "z", "UTC", " GMT", "+05:00", "-0330", "+02", " +02", "+2", "+18:00"),
    *("+18:01", "+19:00", "+05:60", "+05:", " America/New_York", "Europe/Berlin", " Mars/Phobos"),
    *(" Etc/GMT+5", " CET", " EST", "[Europe/Berlin]", "+00:00", " Europe/London", " Asia/Kolkata"),
)
MOMENTS = ("12:30", "T12:30:00", "1700000000", "1700000000000", "2024-03-31 02:30:00 Europe/Berlin")
TEXTS = ("", " a ", "'", '"', 'say ""', "\\", "\\n", "a,b", "é", "\U0001f600", "NULL", "{}", "1.10")
BASE64 = (
    *("", "QQ==", "QUI=", "QUJD", "QQ", "Q===", "QUJD QUJD", "QQ=", "====", "QUJDQ", "-_-_"),
    *("QR==", "QUJ="),
)
ALPHABET = "0123456789+-.,eE:TZ /_naifxyts\t'\"=\u0660\u00a0é%"
TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"), NUMBERS),
    **dict.fromkeys(("DECIMAL(6, 2)", "DECIMAL(38, 2)", "DECIMAL(38, 38)"), NUMBERS),
    **dict.fromkeys(("DECIMAL(20, 0)", "DECIMAL(18, 6)"), NUMBERS),
    "BOOLEAN": WORDS,
    "DATE": DAYS,
    "TIMESTAMP": (*DAYS, *MOMENTS),
    "TIMESTAMP_NTZ": (*DAYS, *MOMENTS),
    "STRING": TEXTS,
    "BINARY": BASE64,
}
BARE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|NaN|-?Infinity")
NESTED = {"": "{}", "list": "ARRAY<{}>", "field": "STRUCT<a: {}>", "entry": "MAP<STRING, {}>"}
SEPARATORS = ",;|\t"
WANTS_QUOTES = frozenset('"\r\n' + SEPARATORS)


@dataclass(frozen=True)
class Cell:
    """A text in a column, which is of a type or nests it. `is_bare`: without quotes."""

    column: str
    type: str
    text: str
    nested: str = ""
    is_bare: bool = False

    @property
    def declared(self) -> str:
        return NESTED[self.nested].format(self.type)


@dataclass(frozen=True)
class Layout:
    """How a file of CSV is written."""

    separator: str = ","
    has_header: bool = True

    @classmethod
    def by_chance(cls, chance: Random) -> Self:
        return cls(chance.choice(SEPARATORS), chance.random() < 0.7)

    @property
    def options(self) -> dict[str, str]:
        """What a source must say of it."""
        is_plain = self.separator == ","
        sep = {} if is_plain else {"sep": self.separator}
        return sep if self.has_header else {**sep, "header": "false"}


def cells(chance: Random, format_: str, count: int) -> list[Cell]:
    """So many cells, among them all that are written above; or some of these, if that is fewer."""
    known = [(nth, text) for nth, texts in enumerate(TYPES.values()) for text in texts]
    known += _every_moment()
    known = known if len(known) < count else chance.sample(known, count // 2)
    chosen = [*known, *(_by_chance(chance) for _ in range(count - len(known)))]
    return [_cell(chance, format_, nth, text) for nth, text in chosen]


def _every_moment() -> Iterator[tuple[int, str]]:
    names = list(TYPES)
    for type_ in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        for time in TIMES:
            for zone in ZONES:
                yield names.index(type_), f"2024-03-31T{time}{zone}"


def _by_chance(chance: Random) -> tuple[int, str]:
    nth = chance.randrange(len(TYPES))
    type_ = list(TYPES)[nth]
    text = chance.choice(TYPES[type_])
    if type_.startswith("TIMESTAMP") or (type_ == "DATE" and chance.random() < 0.3):
        text = _moment(chance)
    elif TYPES[type_] is NUMBERS and chance.random() < 0.5:
        text = _number(chance)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 4))):
        text = _changed(chance, text)
    return nth, text


def _moment(chance: Random) -> str:
    year = chance.choice((1, 1581, 1900, 1970, 2024, 2024, 9999, chance.randrange(1, 9999)))
    day = f"{year:04d}-{chance.randrange(1, 14):02d}-{chance.randrange(1, 32):02d}"
    return f"{day}{chance.choice('T  ')}{chance.choice(TIMES)}{chance.choice(ZONES)}"


def _number(chance: Random) -> str:
    whole = str(chance.randrange(10 ** chance.choice((1, 3, 5, 10, 20, 39))))
    places = "".join(chance.choice("0123456789") for _ in range(chance.choice((0, 0, 1, 2, 3, 18))))
    shift = chance.choice(("", "", "", f"e{chance.randrange(-40, 41)}"))
    return f"{chance.choice(('', '', '-', '+'))}{whole}{'.' if places else ''}{places}{shift}"


def _changed(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    end = at + chance.choice((0, 1))
    return text[:at] + chance.choice(("", *ALPHABET)) + text[end:]


def _cell(chance: Random, format_: str, nth: int, text: str) -> Cell:
    type_ = list(TYPES)[nth]
    if format_ == "csv":
        is_bare = not WANTS_QUOTES.intersection(text) and chance.random() < 0.5
        return Cell(f"c{nth}", type_, text, is_bare=is_bare)
    nested = chance.choice(("", *NESTED))
    is_bare = bool(BARE.fullmatch(text)) and chance.random() < 0.5
    return Cell(f"{nested or 'c'}{nth}", type_, text, nested, is_bare)


def schema(found: Sequence[Cell]) -> str:
    """A column for each that the cells have."""
    columns = {c.column: c.declared for c in found}
    return ", ".join(["i INT", *(f"{name} {type_}" for name, type_ in columns.items())])


def written(format_: str, found: Sequence[Cell], layout: Layout) -> str:
    """A file with a row for each cell."""
    if format_ == "json":
        return "".join(f'{{"i":{i},"{c.column}":{_token(c)}}}\n' for i, c in enumerate(found))
    names = list(dict.fromkeys(c.column for c in found))
    rows = [
        [str(i), *(_csv(c) if c.column == n else "" for n in names)] for i, c in enumerate(found)
    ]
    header = [["i", *names]] if layout.has_header else []
    return "".join(layout.separator.join(row) + "\n" for row in (*header, *rows))


def _csv(cell: Cell) -> str:
    return cell.text if cell.is_bare else _quoted(cell.text)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _token(cell: Cell) -> str:
    token = cell.text if cell.is_bare else json.dumps(cell.text)
    return {
        "": token,
        "list": f"[null, {token} ]",
        "field": f'{{"b": 1.50, "a":{token}}}',
        "entry": f'{{"k": {token}}}',
    }[cell.nested]


def unnested(cell: Cell, value: Any) -> Any:
    """The one value in what was read of a cell's column."""
    match cell.nested:
        case "list":
            assert value[0] is None
            return value[1]
        case "field":
            return value["a"]
        case "entry":
            return dict(value)["k"]
    return value
