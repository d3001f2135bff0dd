"""Declaration of tables whose rows are delivered, in files or elsewhere: sources and dimensions.

A delivered row: its own columns, plus those that its reader adds.

The columns may be missing; all but CUT and UNDATED are STRING. A row with a reason can't be used
and is quarantined. Expectations don't apply to a row that deletes: it need not hold more than its
key.

Options of a file's reader that would alter values are refused, and so are patterns of times that
Spark would refuse, or read as another day or hour. Spark sets what a pattern lacks itself: the year
to 1970, the month to January, the half of the day to the morning. Spark ignores the case of an
option's name. Sluice looks at some options itself, so each has one spelling.

If two intervals share a path, their files would be delivered twice. This happens for hourly
intervals with daily folders, or in the hour that repeats when clocks are set back. `same_path`
samples intervals around every clock change of a year in the zone. It adds consecutive ones, and
some a day, a month and a year apart.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self
from zoneinfo import ZoneInfo

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from sluice.declare.settings import Options, as_option
from sluice.declare.table_spec import Expectation, TableSpec
from sluice.language import Model
from sluice.language.interval import Interval, Schedule, zone
from sluice.language.names import Name, check_name, unknown
from sluice.language.types import read_columns

PLACEHOLDERS = ("interval_start", "interval_end")
CODES = frozenset("YymdHMSjGVufWUz%")


def check_pattern(path: str) -> None:
    """Raise ValueError for a placeholder that no interval can fill."""
    try:
        fields = [part[1:] for part in Formatter().parse(path) if part[1] is not None]
    except ValueError as error:
        raise ValueError(f"{path!r}: {error}; write {{interval_start:%Y-%m-%d}}") from None
    for name, spec, conversion in fields:
        _check_field(name or "", spec or "", conversion)


def check_path(path: str) -> None:
    """Raise ValueError for a path that no file system accepts."""
    if any(ord(character) < 32 for character in path):
        raise ValueError(f"{path!r} has a control character")


def _check_field(name: str, spec: str, conversion: str | None) -> None:
    if name not in PLACEHOLDERS:
        raise ValueError(unknown("placeholder", name, PLACEHOLDERS))
    if "{" in spec or conversion:
        raise ValueError(f"{{{name}}} takes a format and nothing else: {{{name}:%Y-%m-%d}}")
    if not spec:
        raise ValueError(f"{{{name}}} needs a format, e.g. {{{name}:%Y-%m-%d}}")
    codes = [part[:1] for part in spec.replace("%%", "").split("%")[1:]]
    strange = [code for code in codes if code not in CODES]
    if strange or not codes:
        raise ValueError(f"{{{name}:{spec}}} is not a format of a time; write e.g. %Y-%m-%d")


def fill_pattern(pattern: str, interval: Interval, zone: str = "UTC") -> str:
    """Return the interval's own path; bounds are written in the schedule's zone."""
    local = ZoneInfo(zone)
    return pattern.format(
        interval_start=interval.start.astimezone(local), interval_end=interval.end.astimezone(local)
    )


def beside(folder: Path, name: str) -> Path:
    """Return the path of a file in that folder. Raises ValueError if its name leads elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not in the folder of the pipeline's file")
    return Path(folder, path)


def contents(folder: Path, name: str) -> bytes:
    """Return the content of a file of that folder. Raises ValueError if it can't be read."""
    try:
        return beside(folder, name).read_bytes()
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {error.strerror}") from None


BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
APART = (0, 1, 2, 7, 8, 31, 60, 366, 800)  # days; each changes a different part of the calendar
IN_A_ROW = 26
AROUND = timedelta(hours=3)
MOST = 80  # intervals around a clock change


def same_path(pattern: str, schedule: Schedule) -> tuple[Interval, Interval] | None:
    """Return two intervals with the same path, if there are any."""
    seen: dict[str, Interval] = {}
    for interval in _sample(schedule.expression, schedule.timezone):
        path = fill_pattern(pattern, interval, schedule.timezone)
        if seen.setdefault(path, interval) != interval:
            return seen[path], interval
    return None


@lru_cache(maxsize=256)
def _sample(expression: str, timezone: str) -> tuple[Interval, ...]:
    schedule = Schedule(expression=expression, timezone=timezone)
    found: list[Interval] = []
    for days in APART:
        found += islice(schedule.onward(BEGIN + timedelta(days=days)), IN_A_ROW)
    for change in _changes(timezone):
        last = change + AROUND
        some = islice(schedule.onward(change - AROUND), MOST)
        found += (interval for interval in some if interval.start < last)
    return tuple(dict.fromkeys(found))


def _changes(timezone: str) -> Iterator[datetime]:
    """Yield the hours of a year in which clocks are set."""
    local = ZoneInfo(timezone)
    hours = (BEGIN + timedelta(hours=n) for n in range(366 * 24))
    before = BEGIN.astimezone(local).utcoffset()
    for hour in hours if timezone != "UTC" else ():
        offset = hour.astimezone(local).utcoffset()
        if offset != before:
            yield hour
        before = offset


REASON = "_sluice_reason"  # why the row can't be used; null if it can
RAW = "_sluice_raw"  # text that it was read from
FILE = "_sluice_file"  # file that it was read from
KEPT = "_sluice_kept"  # text that the quarantine keeps of it, instead of RAW or its columns
OP = "_sluice_op"  # `insert` or `delete`: what it does to its table
CUT = "_sluice_cut"  # number (INT) of its values that lost digits beyond a microsecond
UNDATED = "_sluice_undated"  # true (BOOLEAN) if it has no event time, so it is in no interval
PATTERN_OPTIONS = ("dateFormat", "timestampFormat", "timestampNTZFormat")
LETTERS = frozenset("GyMLdDQqEFahHKkmsSOXxZVz")
EXAMPLE = "Spark's patterns look like yyyy-MM-dd HH:mm:ss"


def pattern_problems(pattern: str) -> Iterator[str]:
    """Yield what is wrong with a pattern."""
    bare = re.sub("'[^']*'", "", pattern)
    letters = set(re.findall("[A-Za-z]", bare))
    if "'" in bare:
        yield "a quote is not closed"
    if unknown := sorted(letters - LETTERS):
        yield f"it knows no letter {', '.join(unknown)}; {EXAMPLE}, with other text in '…'"
    elif "y" not in letters:
        yield f"it has no year; {EXAMPLE}"
    elif "m" in letters and not letters & set("MLDQq"):
        yield "it has no month: m is a minute, M a month"
    if letters & set("Vz"):
        yield (
            "with V or z, Spark would move a time that the zone skips, and read EST in July as "
            "EDT; an offset is X or Z, and a region behind a time is read without a pattern"
        )
    if letters & set("hK") and "a" not in letters:
        yield "h and K count to twelve and need an a (am, pm); H counts to 23"


LOOSE = (
    "allowComments",
    "allowSingleQuotes",
    "allowUnquotedFieldNames",
    "allowNumericLeadingZeros",
    "allowBackslashEscapingAnyCharacter",
)
PASSING_OVER = (
    "pathGlobFilter",
    "modifiedAfter",
    "modifiedBefore",
    "ignoreCorruptFiles",
    "ignoreMissingFiles",
)
NAMES = (
    *("sep", "delimiter", "quote", "escape", "header", "encoding", "charset", "nullValue", "mode"),
    *("dateFormat", "timestampFormat", "timestampNTZFormat", "timeZone", "locale", "multiLine"),
    *("lineSep", "columnNameOfCorruptRecord", "enforceSchema", "comment", "emptyValue"),
    "unescapedQuoteHandling",
    *PASSING_OVER,
    *LOOSE,
    "allowNonNumericNumbers",
    "allowUnquotedControlChars",
)
ENCODINGS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
ALIASES = {
    "ASCII": "US-ASCII",
    "LATIN-1": "ISO-8859-1",
    "LATIN1": "ISO-8859-1",
    "UTF8": "UTF-8",
    "UTF16": "UTF-16",
    "UTF32": "UTF-32",
}
OF_LINES = ("ISO-8859-1", "UTF-8")  # with one byte for a line feed; ASCII counts as UTF-8
ALTERING_QUOTES = ("BACK_TO_DELIMITER", "SKIP_VALUE")
OFFSET = re.compile("(UTC|GMT|Z|(UTC|GMT)?[+-][0-9]{1,2}(:?[0-9]{2})?)")
LANGUAGE = re.compile("[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.IGNORECASE)
_SPELLED = {name.lower(): name for name in NAMES}


def canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with names and encodings as Spark spells them; `sep` may be an escaped tab.

    A `quote` is escaped by doubling it, unless `escape` is given.

    Raises ValueError for an option in two spellings.
    """
    found = {_SPELLED.get(name.lower(), name): value for name, value in options.items()}
    if len(found) < len(options):
        raise ValueError("`options`: one option is given in two spellings")
    for name in {"encoding", "charset"} & found.keys():
        found[name] = ALIASES.get(found[name].upper(), found[name].upper())
    for name in {"sep", "delimiter"} & found.keys():
        found[name] = found[name].replace("\\t", "\t")
    return {"escape": found["quote"], **found} if found.get("quote") else found


def option_problems(format_: str, options: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with canonical options of files."""
    for name in PASSING_OVER:
        if options.get(name, "false").lower() != "false":
            yield f"{name}: files would be skipped silently; name them in `path`"
    if format_ not in ("csv", "json"):
        return
    is_of_lines = format_ == "json" and not _is_set(options, "multiLine")
    yield from _of_encoding(options, is_of_lines=is_of_lines)
    yield from _of_culture(options)
    if format_ == "csv":
        yield from _of_csv(options)
        return
    for name in LOOSE:
        if _is_set(options, name):
            yield f"{name}: numbers in such JSON would change when read; leave it out"


def _of_encoding(options: Mapping[str, str], *, is_of_lines: bool) -> Iterator[str]:
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    if encoding not in ENCODINGS:
        yield f"encoding {encoding!r}: Spark reads {', '.join(ENCODINGS)}; convert the files"
    elif is_of_lines and encoding not in OF_LINES:
        yield f"encoding {encoding!r}: lines of JSON are read in {', '.join(OF_LINES)} only"


def _of_culture(options: Mapping[str, str]) -> Iterator[str]:
    if not LANGUAGE.fullmatch(locale := options.get("locale", "en")):
        yield f"locale {locale!r}: a language and a country are wanted, such as de-DE"
    if not _is_zone(given := options.get("timeZone", "UTC")):
        yield f"timeZone {given!r}: a region such as Europe/Berlin or an offset is expected"
    for name in PATTERN_OPTIONS:
        for problem in pattern_problems(options[name]) if name in options else ():
            yield f"{name} {options[name]!r}: {problem}"


def _of_csv(options: Mapping[str, str]) -> Iterator[str]:
    for name in ("quote", "escape", "comment"):
        if len(options.get(name, "")) > 1:
            yield f"{name} {options[name]!r}: one character is expected, or none"
    separator = options.get("sep", options.get("delimiter", ","))
    if separator in ("\\", options.get("quote", '"')):
        yield f"sep {separator!r}: neither a backslash nor the quote is taken; convert the files"
    if options.get("header", "true").lower() not in ("true", "false"):
        yield f"header {options['header']!r}: true or false is expected"
    if options.get("unescapedQuoteHandling", "").upper() in ALTERING_QUOTES:
        yield "unescapedQuoteHandling: rows would be lost or altered; leave it out"
    if options.get("multiLine", "true").lower() == "false":
        yield "multiLine: false would cut texts at line breaks inside quotes; leave it out"


def _is_zone(name: str) -> bool:
    try:
        return bool(OFFSET.fullmatch(name) or zone(name))
    except ValueError:
        return False


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


FILES = ("csv", "json", "parquet")  # formats that are read from files
NO_VARIANT = (
    "column {0} is {1}, which can be neither compared nor read without Spark; declare STRING, "
    "which keeps JSON as it was written, and read a part in a view: get_json_object({0}, '$.part')"
)


class Column(Model):
    """A declared column and its Spark SQL type, in upper case."""

    name: Name
    type: str


class Change(Model):
    """The column with each row's operation, and the words for the operations."""

    column: str
    insert: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    update_before: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _words_are_disjoint(self) -> Self:
        groups = (self.insert, self.update, self.delete, self.update_before, self.ignore)
        words = [word for group in groups for word in group]
        twice = sorted({word for word in words if words.count(word) > 1})
        if twice:
            raise ValueError(f"{', '.join(map(repr, twice))}: a word can have only one meaning")
        if not self.insert and not self.update:
            raise ValueError("`insert` or `update` must name the words that insert or update rows")
        return self


class Declared(TableSpec):
    """A table whose rows are delivered. `IS_WHOLE`: all of its files are read, or none."""

    IS_DELIVERED: ClassVar[bool] = True
    IS_WHOLE: ClassVar[bool] = False
    SILENT: ClassVar[frozenset[str]] = frozenset({"path", "format", "options", "names"})
    PLACES: ClassVar[frozenset[str]] = frozenset({"path", "options"})

    description: str = ""
    path: str = ""
    options: Options = Field(default_factory=dict)
    columns: Annotated[tuple[Column, ...], WithJsonSchema({"type": "string", "pattern": r"\S"})] = (
        Field(alias="schema", min_length=1)
    )
    names: dict[str, str] = Field(default_factory=dict)
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    change: Change | None = None
    expect: tuple[Expectation, ...] = ()
    if TYPE_CHECKING:
        format: str
        delivery: str

    @field_validator("path")
    @classmethod
    def _path_is_one(cls, path: str) -> str:
        check_path(path)
        return path

    @field_validator("key")
    @classmethod
    def _has_columns(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        if not key:
            raise ValueError("at least one column is expected; without a key, leave `key` out")
        return key

    @field_validator("columns", mode="before")
    @classmethod
    def _read_ddl(cls, ddl: Any) -> Any:
        if not isinstance(ddl, str):
            return ddl
        columns = tuple(_column(name, type_) for name, type_ in read_columns(ddl))
        for column in columns:
            if "VARIANT" in column.type:
                raise ValueError(NO_VARIANT.format(column.name, column.type))
        return columns

    @model_validator(mode="before")
    @classmethod
    def _options_have_one_spelling(cls, data: Any) -> Any:
        options = data.get("options") if isinstance(data, dict) else None
        if not isinstance(options, dict) or data.get("format") not in ("csv", "json"):
            return data
        return {**data, "options": canonical({k: as_option(v) for k, v in options.items()})}

    @field_validator("options", mode="before")
    @classmethod
    def _as_spark_options(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        return {key: as_option(value) for key, value in options.items()}

    @model_validator(mode="after")
    def _files_can_be_read(self) -> Self:
        for problem in option_problems(self.format, self.options):
            raise ValueError(f"`options`: {problem}")
        return self

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        return self.expect

    @property
    def names_in_files(self) -> Mapping[str, str]:
        return self.names

    @property
    def takes_new_columns(self) -> bool:
        """True if it takes columns of its files that are not declared."""
        return False

    @property
    def types(self) -> dict[str, str]:
        """Types of the declared columns, by name."""
        return {column.name: column.type for column in self.columns}

    @property
    def of_files(self) -> dict[str, str]:
        """Declared columns by the names that their files give them."""
        own = {name: name for name in self.types if name not in self.names}
        return {**own, **{theirs: name for name, theirs in self.names.items()}}

    @property
    def row_types(self) -> dict[str, str]:
        """Types of the table's columns, without the column of a change."""
        change = self.change.column if self.change else None
        return {name: type_ for name, type_ in self.types.items() if name != change}


def _column(name: str, type_: str) -> Column:
    try:
        check_name(name)
    except ValueError as error:
        raise ValueError(
            f"{error}; if the files use this name, declare another one, and list {name!r} under "
            "`names`"
        ) from None
    return Column(name=name, type=type_)
