"""Options of a file's reader: names as Spark spells them, and options that would alter values.

Spark ignores the case of a name. Sluice looks at some options itself, so each has one spelling.
"""

from collections.abc import Iterator, Mapping

LOOSE = (
    "allowComments",
    "allowSingleQuotes",
    "allowUnquotedFieldNames",
    "allowNumericLeadingZeros",
)
NAMES = (
    *("sep", "delimiter", "quote", "escape", "header", "encoding", "charset", "nullValue", "mode"),
    *("dateFormat", "timestampFormat", "timestampNTZFormat", "timeZone", "locale", "multiLine"),
    *("lineSep", "columnNameOfCorruptRecord", "enforceSchema", "comment", "emptyValue"),
    *LOOSE,
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
OF_LINES = ENCODINGS[:3]  # in which a line feed is one byte
_SPELLED = {name.lower(): name for name in NAMES}


def canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with names and encodings as Spark spells them; `sep` may be an escaped tab.

    Raises ValueError for an option in two spellings.
    """
    found = {_SPELLED.get(name.lower(), name): value for name, value in options.items()}
    if len(found) < len(options):
        raise ValueError("`options`: one option is given in two spellings")
    for name in {"encoding", "charset"} & found.keys():
        found[name] = ALIASES.get(found[name].upper(), found[name].upper())
    for name in {"sep", "delimiter"} & found.keys():
        found[name] = found[name].replace("\\t", "\t")
    return found


def problems(format_: str, options: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with canonical options of CSV or JSON."""
    if format_ not in ("csv", "json"):
        return
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    is_of_lines = format_ == "json" and not _is_set(options, "multiLine")
    if encoding not in ENCODINGS:
        yield f"encoding {encoding!r}: Spark reads {', '.join(ENCODINGS)}; convert the files"
    elif is_of_lines and encoding not in OF_LINES:
        yield f"encoding {encoding!r}: lines of JSON are read in {', '.join(OF_LINES)} only"
    for name in ("quote", "escape"):
        if format_ == "csv" and len(options.get(name, "")) > 1:
            yield f"{name} {options[name]!r}: one character is wanted, or none"
    if format_ == "csv" and options.get("multiLine", "true").lower() == "false":
        yield "multiLine: false would cut texts at line breaks inside quotes; leave it out"
    for name in LOOSE:
        if format_ == "json" and _is_set(options, name):
            yield f"{name}: numbers in such JSON would not arrive as they are written; leave it out"


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"
