"""Paths for Spark, and back: for any file name, without matching other files.

Spark treats a path as a pattern. Hadoop's local file system can't open, or skips, some names: with
a colon, a leading `_` or `.`, or letters that Java's locale lacks. A local file with such a name is
read by a link, whose own path shows the target. In object stores, characters of patterns are
escaped. A file in a store that Spark may not use is copied to such a path, which only tasks of this
machine see.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sluice.declare.stores import takes_spark
from sluice.delta.places.delta_rs import locate
from sluice.delta.places.folders import local_path
from sluice.gate.sql import text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ODD = re.compile(
    r"[^ -~]|[*?\[\]{}\\:]|/[._][^/]*$|\._COPYING_$"  # the last: copy under way
    r"|\.(?i:lz4|snappy|deflate)$"  # Spark would decompress these with Hadoop's own formats
)
_PATTERN = re.compile(r"([*?\[\]{}\\])")
CODECS = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
"""Endings by which Spark decompresses texts, in any case, with the codec of each."""
_LINKS = "sluice-names-"
_LINK = rf"file:/+\S*?/{_LINKS}[^/]*/((?:[0-9a-f]+/)+)f(?:\.[a-z0-9]+)?"
_STEP = 200  # letters per folder of a link
_PLACE = "_metadata.file_path"

REAL_PATH = (
    f"CASE WHEN contains({_PLACE}, '/{_LINKS}') THEN "
    f"decode(unhex(replace(regexp_extract({_PLACE}, {text(_LINK)}, 1), '/', '')), 'UTF-8') "
    f"ELSE regexp_replace(url_decode(replace({_PLACE}, '+', '%2B')), '^file:/+', '/') END"
)
"""SQL for the real path of a row's file."""


def sees_copies(session: "SparkSession", uris: Iterable[str]) -> bool:
    """True if Spark reads all of these files itself, or its tasks see this machine's disk."""
    if all(map(takes_spark, uris)):
        return True
    return (session.conf.get("spark.master") or "").startswith("local")


def with_real_paths(words: str) -> str:
    """Return Spark's words with the files' own paths."""

    def real_path(found: "re.Match[str]") -> str:
        link, path = found.groups()
        return bytes.fromhex(link.replace("/", "")).decode() if link else f"/{unquote(path)}"

    return re.sub(rf"{_LINK}|file:/+(\S*)", real_path, words)


def spark_path(uri: str) -> str:
    """Return a path for Spark's readers; it means that one file."""
    place = local_path(uri)
    if place is None:
        return _escape(uri if takes_spark(uri) else _copy(uri))
    return _escape(_link(uri, place)) if _ODD.search(place) else place


def _escape(path: str) -> str:
    return _PATTERN.sub(r"\\\1", path)


def _link(uri: str, place: str) -> str:
    """Return a link to the file, making it if there is none."""
    link = _stand_in(uri)
    with suppress(FileExistsError):
        link.symlink_to(place)
    return str(link)


def _copy(uri: str) -> str:
    """Return a copy of a file in a store that Spark can't reach itself."""
    filesystem, path = locate(uri)
    copy = _stand_in(uri)
    with filesystem.open_input_stream(path) as source, copy.open("wb") as target:
        copyfileobj(source, target)
    return str(copy)


def _stand_in(uri: str) -> Path:
    """Return the path that represents a URI; create its folder."""
    name = uri.encode().hex()
    steps = (name[at : at + _STEP] for at in range(0, len(name), _STEP))
    folder = Path(_folder().name, *steps)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / ("f" + next(filter(uri.lower().endswith, CODECS), ""))


@cache
def _folder() -> "TemporaryDirectory[str]":
    """Return a folder of this process's own, which is removed with it."""
    found = TemporaryDirectory(prefix=_LINKS)
    Path(found.name).chmod(0o755)  # lets another user's Spark read permitted files
    return found
