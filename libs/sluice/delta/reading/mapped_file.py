"""A file of the index of rows: mapped, whole or not there, and never trusted.

It has a payload, a description, and a checksum for each block of the payload. A block is compared
with its checksum when it is used. Those that aren't in memory are read from the disk together, and
no others with them: at a page that is missing, Linux would read up to some megabytes around it.
"""

import ctypes
import json
import mmap
import resource
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import xxhash

from sluice.delta.places.failpoint import passing

UNFINISHED = ".unfinished-"
BLOCK = 4096  # bytes, a page of memory
NEAR = 4  # pages; what lies between two that are read is read with them
TRIED = 5  # blocks
END = 24  # bytes: lengths of payload and description, checksum of description and blocks' checksums

_libc = ctypes.CDLL(None)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Unusable(Exception):
    """An index is missing, of another file, cut or altered."""


class MappedFile:
    """A file of this index, mapped: a payload, a description, and a checksum for each block.

    Raises Unusable if it can't be used for the data file that `about` names.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]):
        try:
            whole = _mapped(path)
        except (OSError, ValueError) as error:
            raise Unusable from error
        payload, described, sealed = np.frombuffer(whole[-END:], np.uint64).tolist()
        blocks = -(-payload // BLOCK)
        ends = (payload, payload + 8 * blocks, payload + 8 * blocks + described)
        if ends[-1] + END != len(whole):
            raise Unusable
        _fetch(whole, np.arange(payload // BLOCK, -(-len(whole) // BLOCK)))
        if _checksum(whole[payload : ends[-1]]) != sealed:
            raise Unusable
        self.payload = whole[:payload]
        self.about = json.loads(whole[ends[1] : ends[2]].to_pybytes())
        self._sums = np.frombuffer(whole[ends[0] : ends[1]], np.uint64)
        self._is_right = np.zeros(blocks, np.bool_)
        if {name: self.about.get(name) for name in about} != about:
            raise Unusable

    def check(self, starts: np.ndarray, stops: np.ndarray) -> None:
        """Compare the blocks of these ranges with their checksums; raises Unusable."""
        used, count = stops > starts, len(self._is_right)
        begun = np.bincount(starts[used] // BLOCK, minlength=count + 1)
        ended = np.bincount((stops[used] - 1) // BLOCK + 1, minlength=count + 1)
        is_touched = np.cumsum(begun - ended)[:count] > 0
        touched, view = np.flatnonzero(is_touched), memoryview(self.payload)
        _fetch(self.payload, touched)
        blocks = touched[~self._is_right[touched]]
        for number, known in zip(blocks.tolist(), self._sums[blocks].tolist(), strict=True):
            if _checksum(view[number * BLOCK : (number + 1) * BLOCK]) != known:
                raise Unusable
        self._is_right[blocks] = True


def _mapped(path: Path) -> pa.Buffer:
    """Return what a file holds. Arrow fetches what it reads, so that is the end alone."""
    file = pa.memory_map(str(path))
    begin = file.seek(file.size() - END)
    end = file.read_buffer(END)
    whole = pa.foreign_buffer(end.address - begin, begin + END, base=end)
    _libc.madvise(whole.address, len(whole), mmap.MADV_RANDOM)
    return whole


def _fetch(data: pa.Buffer, blocks: np.ndarray) -> None:
    """Have blocks of mapped data read, all at once, if one of some isn't in memory."""
    view, before = memoryview(data), resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for block in blocks[:: len(blocks) // TRIED + 1].tolist():
        view[block * BLOCK]
    if resource.getrusage(resource.RUSAGE_SELF).ru_majflt == before:
        return
    pages = np.unique(blocks * BLOCK // mmap.PAGESIZE)
    is_there = np.ones(-(-data.size // mmap.PAGESIZE), np.uint8)
    _libc.mincore(data.address, data.size, is_there.ctypes.data)
    missing = pages[is_there[pages] & 1 == 0]
    for some in np.split(missing, np.flatnonzero(np.diff(missing) > NEAR) + 1):
        if len(some):
            start, stop = int(some[0]) * mmap.PAGESIZE, int(some[-1] + 1) * mmap.PAGESIZE
            _libc.madvise(data.address + start, stop - start, mmap.MADV_WILLNEED)


def _checksum(data: pa.Buffer | memoryview) -> int:
    return xxhash.xxh3_64_intdigest(data)


def write_sealed(
    path: Path,
    write: Callable[[IO[bytes]], object],
    about: Callable[[pa.Buffer], Mapping[str, Any]],
) -> None:
    """Write such a file, which is there whole or not at all.

    `write` writes the payload, and `about` describes what was written.
    """
    file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False)  # noqa: SIM115
    try:
        with file:
            write(file)
            file.flush()
            payload = pa.memory_map(file.name).read_buffer()
            view = memoryview(payload)
            blocks = range(0, len(view), BLOCK)
            sums = np.array([_checksum(view[at : at + BLOCK]) for at in blocks], np.uint64)
            described = json.dumps(about(payload)).encode()
            ends = (len(view), len(described), _checksum(sums.tobytes() + described))
            file.writelines((sums.tobytes(), described, np.array(ends, np.uint64).tobytes()))
        passing("sealing", "index")
        Path(file.name).replace(path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
