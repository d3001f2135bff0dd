"""A Delta table that somebody else writes. Nothing is ever written to it."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileType

from sluice.delta.log.actions import Log
from sluice.delta.log.opened import opened
from sluice.delta.places.delta_rs import files_below
from sluice.delta.places.faults import store_fault
from sluice.errors import Retryable, UsageError

_REFUSED = re.compile("Permission denied|os error 13|Errno 13", re.IGNORECASE)


@dataclass(frozen=True)
class Foreign:
    """Somebody else's table at its newest version."""

    uri: str
    table_id: str
    version: int

    @classmethod
    def at(cls, uri: str, reader: str) -> "Foreign":
        """Return the table at a URI. Raises UsageError if none can be opened there."""
        try:
            found = opened(uri)
        except TableNotFoundError:
            raise UsageError(
                f"{reader}: there is no Delta table at {uri}, or no permission to read it",
                hint="give the folder with its `_delta_log`, and let the job's user read it",
            ) from None
        except (DeltaError, OSError) as error:
            if fault := store_fault(error):
                raise fault from error
            raise UsageError(
                f"{reader}: the Delta table at {uri} can't be opened: {error}",
                hint="its owner may have switched on an unsupported feature, or revoked read "
                "access",
            ) from None
        return cls(uri, str(found.metadata().id), found.version())

    @property
    def log(self) -> Log:
        return Log(self.uri)

    def columns(self, version: int) -> list[str]:
        """Return the names of its columns as of a version."""
        return [field.name for field in opened(self.uri, version).schema().fields]

    def can_open(self, version: int) -> bool:
        """True if the log still shows a version."""
        try:
            return bool(opened(self.uri, version))
        except DeltaError:
            return False

    def fingerprint(self, version: int) -> str:
        """Return the fingerprint of a commit; nothing if it was cleaned."""
        try:
            actions = self.log.actions(version)
        except FileNotFoundError:
            return ""
        return hashlib.sha256(json.dumps(actions, sort_keys=True).encode()).hexdigest()[:16]

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the missing ones of these files, by their paths in its folder."""
        known = [path for path in paths if ":" not in path]
        with naming_refusals(self.uri):
            found = files_below(self.uri).get_file_info(known)
        return [p for p, info in zip(known, found, strict=True) if info.type != FileType.File]


@contextmanager
def naming_refusals(uri: str) -> Iterator[None]:
    """Raise UsageError if a file may not be read, Retryable if it is gone."""
    try:
        yield
    except FileNotFoundError as error:
        raise Retryable(f"{uri}: a file was deleted while it was read: {error}") from error
    except OSError as error:
        if fault := store_fault(error):
            raise fault from error
        if not _REFUSED.search(f"{error} {error.__cause__}"):
            raise
        raise UsageError(
            f"there is no permission to read {uri}: {str(error).splitlines()[0]}",
            hint="nothing was committed; let the user of the job read its files",
        ) from error
