"""Options of a file's reader: names as Spark spells them, and options that would alter values.

Spark ignores the case of a name. Sluice looks at some options itself, so each has one spelling.
"""

import re
from collections.abc import Iterator, Mapping

from sluice.declare import pattern_problems
from sluice.language.interval import zone

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


def problems(format_: str, options: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with canonical options of files."""
    for name in PASSING_OVER:
        if options.get(name, "false").lower() != "false":
            yield f"{name}: files would be skipped silently; name them in `path`"
    if format_ not in ("csv", "json"):
        return
    is_of_lines = format_ == "json" and not _is_set(options, "multiLine")
    yield from _of_encoding(options, is_of_lines=is_of_lines)
    yield from _of_culture(options)
    yield from (_of_csv if format_ == "csv" else _of_json)(options)


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
    for name in pattern_problems.OPTIONS:
        for problem in pattern_problems.problems(options[name]) if name in options else ():
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


def _of_json(options: Mapping[str, str]) -> Iterator[str]:
    for name in LOOSE:
        if _is_set(options, name):
            yield f"{name}: numbers in such JSON would change when read; leave it out"


def _is_zone(name: str) -> bool:
    try:
        return bool(OFFSET.fullmatch(name) or zone(name))
    except ValueError:
        return False


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"
