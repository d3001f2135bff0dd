"""Expressions and the types that they have."""

from pathlib import Path

COLUMNS = {
    "a": "INT",
    "b": "BIGINT",
    "d": "DECIMAL(12, 2)",
    "f": "DOUBLE",
    "flag": "BOOLEAN",
    "s": "STRING",
    "s2": "STRING",
    "s3": "STRING",
    "j": "STRING",
    "bin": "BINARY",
    "at": "TIMESTAMP",
    "dt": "DATE",
    "xs": "ARRAY<INT>",
    "ss": "ARRAY<STRING>",
    "m": "MAP<STRING, INT>",
    "st": "STRUCT<x: INT, y: STRING>",
}
LINES = (Path(__file__).parent / "expressions.txt").read_text(encoding="utf-8").splitlines()
EXAMPLES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]
