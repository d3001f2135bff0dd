"""Files that a declaration names, relative to the folder of the pipeline's file."""

from pathlib import Path, PurePosixPath


def beside(folder: Path, name: str) -> Path:
    """Return the path of a file in that folder. Raises ValueError if its name leads elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not in the folder of the pipeline's file")
    return Path(folder, path)


def contents(folder: Path, name: str) -> bytes:
    """Return the content of a file of that folder. Raises ValueError if it can't be read."""
    try:
        return beside(folder, name).read_bytes()
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {error.strerror}") from None
