"""What a load notes of the files that it has read, and what the next one tells by that.

Files of a snapshot are noted together, by one fingerprint of their listing. Those of a log are
noted one by one, so that the ones that came since are told from the ones that were read.
"""

from collections.abc import Sequence

from sluice.dimensions.spec import Dimension
from sluice.storage.landing import LandedFile, fingerprint


def note(spec: Dimension, files: Sequence[LandedFile], made: str) -> str:
    """What is noted of files; it changes with them, and with what is made of them."""
    if spec.is_log:
        return " ".join(_print(file, made) for file in files)
    return fingerprint(files, made)


def not_noted(files: Sequence[LandedFile], made: str, noted: str) -> tuple[LandedFile, ...] | None:
    """The files of a log that were not read yet.

    None where one that was read has changed or gone, or something else was made of it.
    """
    prints = {_print(file, made): file for file in files}
    known = set(noted.split())
    if not known <= prints.keys():
        return None
    return tuple(file for print_, file in prints.items() if print_ not in known)


def _print(file: LandedFile, made: str) -> str:
    """Of one file. States of logs name files by their real paths; older ones are made again."""
    return fingerprint([file], f"{made} real paths")
