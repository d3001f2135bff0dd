"""The last failure of each table, kept until a batch of that table succeeds.

Each table has one small JSON file, `<lake>/__quality/failures/<pipeline>.<table>.json`. It is
written and deleted whole, which object stores can do, too. Nothing is written while nothing fails.
A process that is killed keeps nothing.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from sluice.delta.lake import LakeLayout

SUFFIX = ".json"


@dataclass(frozen=True)
class Failure:
    """A table's last failure: its time, reason, hint and exit code."""

    table: str
    at: datetime
    reason: str
    hint: str = ""
    exit_code: int = 0
    run: str = ""

    @classmethod
    def from_json(cls, text: bytes) -> "Failure | None":
        """Read a failure; None if the text is not one, as from a newer release."""
        try:
            fields = json.loads(text)
            return cls(**{**fields, "at": datetime.fromisoformat(fields["at"])})
        except (ValueError, TypeError, KeyError):
            return None

    def to_json(self) -> bytes:
        """Return the content of its file."""
        return json.dumps({**asdict(self), "at": self.at.isoformat()}, indent=1).encode()


def keep(lake: LakeLayout, failure: Failure) -> None:
    """Store a failure in place of the table's earlier one."""
    filesystem, folder = _folder(lake)
    filesystem.create_dir(folder, recursive=True)
    path = f"{folder}/{failure.table}{SUFFIX}"
    if not isinstance(filesystem, LocalFileSystem):
        _put(filesystem, path, failure.to_json())
        return
    draft = f"{folder}/.{failure.table}-{datetime.now(UTC).timestamp()}"
    _put(filesystem, draft, failure.to_json())
    filesystem.move(draft, path)  # a reader never meets half a file


def clear(lake: LakeLayout, table_id: str) -> None:
    """Delete a table's failure; do nothing if there is none."""
    filesystem, folder = _folder(lake)
    path = f"{folder}/{table_id}{SUFFIX}"
    if filesystem.get_file_info(path).type == FileType.File:
        with suppress(FileNotFoundError):  # another process was first
            filesystem.delete_file(path)


def kept(lake: LakeLayout) -> dict[str, Failure]:
    """Return the stored failures, by table."""
    filesystem, folder = _folder(lake)
    listed = filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
    paths = [f.path for f in listed if f.type == FileType.File and f.path.endswith(SUFFIX)]
    found = (_read(filesystem, path) for path in paths)
    return {failure.table: failure for failure in found if failure}


def _read(filesystem: FileSystem, path: str) -> Failure | None:
    try:
        with filesystem.open_input_stream(path) as stream:
            return Failure.from_json(stream.read())
    except FileNotFoundError:  # cleared after it was listed
        return None


def _put(filesystem: FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def _folder(lake: LakeLayout) -> tuple[FileSystem, str]:
    uri = f"{lake.quality_uri}/failures"
    return FileSystem.from_uri(uri) if "://" in uri else (LocalFileSystem(), uri)
