"""Formats of files by their first bytes, for files delivered as text.

No text begins like that. Such a file is therefore reported as a whole, not line by line.
"""

import re

LONGEST = 600  # bytes that show a format
_BEGINS = {
    "gzip": rb"\x1f\x8b",
    "bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "lz4": rb"\x04\x22\x4d\x18",
    "xz": rb"\xfd7zXZ\0",
    "a ZIP archive": rb"PK(\x03\x04|\x05\x06|\x07\x08)",
    "a 7z archive": rb"7z\xbc\xaf\x27\x1c",
    "a RAR archive": rb"Rar!\x1a\x07",
    "a tar archive": rb".{257}ustar",
    "Parquet": rb"PAR1[^\s -~]",
    "Avro": rb"Obj\x01",
    "ORC": rb"ORC[^\s -~]",
    "Arrow": rb"ARROW1\0",
    "SQLite": rb"SQLite format 3\0",
    "PDF": rb"%PDF-",
    "a document of an old Office": rb"\xd0\xcf\x11\xe0",
    "an image": rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a",
    "a program": rb"\x7fELF",
}
_KINDS = {kind: re.compile(begin, re.DOTALL) for kind, begin in _BEGINS.items()}
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff")  # also how UTF-32 begins
_ODD = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_LOOKED_AT = 1000  # characters


def kind_of(first: bytes, encoding: str) -> str:
    """Return the format that begins with these bytes; '' for unknown ones."""
    kind = next((kind for kind, begin in _KINDS.items() if begin.match(first)), "")
    if not kind and _UTF_16.match(first) and not encoding.upper().startswith(("UTF-16", "UTF-32")):
        return "text in UTF-16"
    return kind


def is_text(text: str) -> bool:
    """False if it begins with zeros among other bytes that no text has."""
    begin = text[:_LOOKED_AT]
    return "\0" not in begin or len(_ODD.findall(begin)) * 10 <= len(begin)
