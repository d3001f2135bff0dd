"""Notes of a load about the files that it has read, and their use by the next load.

Files of a snapshot share one note, a fingerprint of their listing. Files of a log are noted one by
one, so that the next load can distinguish new files from those already read.
"""

from collections.abc import Sequence

from sluice.delta.places.landed_files import LandedFile
from sluice.delta.reading.landing import fingerprint
from sluice.dimensions.spec import Dimension


def note(spec: Dimension, files: Sequence[LandedFile], made: str) -> str:
    """Return the note about files; it changes with them, and with their interpretation."""
    if spec.is_log:
        return " ".join(_print(file, made) for file in files)
    return fingerprint(files, made)


def not_noted(files: Sequence[LandedFile], made: str, noted: str) -> tuple[LandedFile, ...] | None:
    """Return the files of a log that were not read yet.

    Return None if a file that was read has changed, is missing, or was read differently.
    """
    prints = {_print(file, made): file for file in files}
    known = set(noted.split())
    if not known <= prints.keys():
        return None
    return tuple(file for print_, file in prints.items() if print_ not in known)


def _print(file: LandedFile, made: str) -> str:
    """Fingerprint a file. States of logs name files by real paths; older states are rebuilt."""
    return fingerprint([file], f"{made} real paths")
