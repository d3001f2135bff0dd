"""Deletion vectors: rows that a commit removed from a file without rewriting it.

A file's vector lists the numbers of its removed rows. Sluice writes vectors into the log itself.
Vectors in separate files, which other writers make, are read in the same way.
"""

import base64
import uuid
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from cachetools import LRUCache
from deltalake import DeltaTable
from pyroaring import BitMap64

from sluice.delta.log.active import as_table
from sluice.delta.log.opened import CommitKey, commit_of

FEATURE = "deletionVectors"
SETTING = "delta.enableDeletionVectors"
INLINE, BESIDE = "i", "u"
NAMED, NAME = "deletion_vector_", 20  # files of vectors; characters of their names in the log
_MAGIC = (1681511377).to_bytes(4, "little")
# The digits of 85 in RFC 1924 and in ZeroMQ.
_RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_RFC_1924, _Z85), bytes.maketrans(_Z85, _RFC_1924)
_KEPT_BYTES = 64_000_000


def _size(kept: Mapping[str, pa.BooleanArray]) -> int:
    return sum((int(mask.nbytes) for mask in kept.values()), start=1)


_masks: LRUCache[CommitKey, Mapping[str, pa.BooleanArray]] = LRUCache(_KEPT_BYTES, getsizeof=_size)
_keeping = Lock()


def has_vectors(table: DeltaTable) -> bool:
    """True if files of the table may have deletion vectors."""
    return FEATURE in (table.protocol().reader_features or ())


def kept_rows(table: DeltaTable) -> Mapping[str, pa.BooleanArray]:
    """Return, for each file that lost rows, a mask that is true for the rows it still has.

    Files are known by `file_name`. A mask may end before its file does; all later rows are kept.
    """
    if not has_vectors(table):
        return {}
    commit = commit_of(table.table_uri, table.version())
    with _keeping:
        if commit and commit in _masks:
            return _masks[commit]
    found: dict[str, pa.BooleanArray] = {}
    for batch in as_table(table.deletion_vectors()).to_batches():
        for path, mask in zip(batch["filepath"], batch["selection_vector"], strict=True):
            found[file_name(path.as_py())] = mask.values
    if commit and _size(found) <= _KEPT_BYTES:
        with _keeping:
            _masks[commit] = found
    return found


def lost_rows(file: Mapping[str, Any]) -> BitMap64 | None:
    """Return the rows that a file's `add` action marks; None if a file of its own holds them."""
    vector = file.get("deletionVector")
    if not vector:
        return BitMap64()
    if vector["storageType"] != INLINE:
        return None
    data = base64.b85decode(vector["pathOrInlineDv"].encode().translate(_FROM_Z85))
    return BitMap64.deserialize(data[len(_MAGIC) : vector["sizeInBytes"]])


def vector_file(file: Mapping[str, Any]) -> str | None:
    """Return the path, in the table's folder, of what holds a file's vector; None if the log does.

    A vector by an absolute path lies elsewhere, and counts as none.
    """
    vector = file.get("deletionVector")
    if not vector or vector["storageType"] != BESIDE:
        return None
    folder, name = vector["pathOrInlineDv"][:-NAME], vector["pathOrInlineDv"][-NAME:]
    number = uuid.UUID(bytes=base64.b85decode(name.encode().translate(_FROM_Z85)))
    return f"{folder}/{NAMED}{number}.bin" if folder else f"{NAMED}{number}.bin"


def mask_of(kept: pa.BooleanArray, start: int, rows: int) -> pa.BooleanArray:
    """Return the part of a mask for `rows` rows of its file, from row `start` on."""
    part = kept.slice(start, rows)
    rest = pa.repeat(pa.scalar(True), rows - len(part))
    return pa.concat_arrays([part, rest]) if len(rest) else part


def file_name(path: str) -> str:
    """Return the last name of a file's path, which no other file of the table has."""
    return unquote(path).rpartition("/")[2]


def vector_of(rows: BitMap64) -> dict[str, Any]:
    """Return the vector of rows for a file's `add` action, held in the log itself.

    Rows side by side take no more room than one: upkeep marks whole parts of a file.
    """
    rows.run_optimize()
    data = _MAGIC + rows.serialize()
    padded = data + bytes(-len(data) % 4)
    text = base64.b85encode(padded).translate(_TO_Z85).decode()
    return {
        "storageType": INLINE,
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }
