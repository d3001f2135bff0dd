"""Delete month-old commits of a log that every consumer has read.

Consumers read feeds from recorded versions, whose commits prove that a table is still the same. So
the log keeps a checkpoint at or before the oldest named version, and every commit from there on.
Older versions can no longer be opened.
"""

import re
from datetime import datetime, timedelta

from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector

from sluice.delta.places.delta_rs import files_below, open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import LOG
from sluice.delta.upkeep.vacuum import committed_at

LEAST = timedelta(days=30)  # for time travel and for inspecting past batches
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
NUMBERED = re.compile(r"(\d{20})\..+")  # commits, checkpoints, and what other writers add to them


def clean_log(uri: str, oldest: int, now: datetime, least: timedelta = LEAST) -> int:
    """Delete the log before a checkpoint; return the number of deleted files.

    `oldest`: the oldest version that a consumer names. Nothing is deleted if the checkpoint can't
    be read. Deletion begins with the oldest file, so a kill only leaves a shorter log.
    """
    names = _names(uri)
    made = [int(found[1]) for name in names if (found := CHECKPOINT.fullmatch(name))]
    first = next((v for v in reversed(made) if v <= oldest and _is_old(uri, v, now - least)), None)
    gone = [name for name in names if first is not None and int(name[:20]) < first]
    if first is None or not gone or not _opens(uri, first):
        return 0
    files = files_below(uri)
    for name in gone:
        files.delete_file(f"{LOG}/{name}")
        passing("cleaning", uri)
    return len(gone)


def _names(uri: str) -> list[str]:
    """Return the log's numbered files, the oldest first."""
    found = files_below(uri).get_file_info(FileSelector(LOG, allow_not_found=True))
    return sorted(info.base_name for info in found if NUMBERED.fullmatch(info.base_name))


def _is_old(uri: str, version: int, upto: datetime) -> bool:
    made = committed_at(uri, version)
    return made is not None and made <= upto


def _opens(uri: str, version: int) -> bool:
    """True if the checkpoint of a version can be read, without any commit before it."""
    try:
        open_table(uri, version).get_add_actions()
    except DeltaError:
        return False
    return True
