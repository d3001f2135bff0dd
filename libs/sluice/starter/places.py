"""Places of a new project's data: the files there, and the format that their names imply."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sluice.errors import UsageError
from sluice.starter import delta

FORMATS: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".bz2", ".zst")  # those that pyarrow detects by their endings


def listed(found_at: Mapping[str, list[Path]], followed: list[Path]) -> list[Path]:
    """Return the files at these places, except for those of Delta tables."""
    found: dict[Path, None] = {}
    for pattern, places in found_at.items():
        files = [f for place in places for f in ([place] if place.is_file() else _below(place))]
        every = [file.resolve() for file in files if format_of(file)]
        data = [file for file in every if not {*file.parents} & {*followed}]
        if not data and not delta.folders(places):
            raise UsageError(
                f"there is no data file at {pattern}",
                hint=f"name files that end in {', '.join(FORMATS)}, also compressed, or a folder",
            )
        found |= dict.fromkeys(data)
    return list(found)


def split(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the addresses among these patterns, and the others, each in their order."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for one in patterns:
        found["://" in one].append(one.rstrip("/") if "://" in one else one)
    return found[True], found[False]


def matches(pattern: str, folder: Path) -> list[Path]:
    """Return the file or folder of that name, or else all that match the pattern."""
    if (folder / pattern).exists():
        return [folder / pattern]
    given = Path(pattern)
    anchor = given.anchor or str(folder)
    return sorted(Path(anchor).glob(str(given.relative_to(given.anchor))))


def _below(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file())


def format_of(file: Path) -> str:
    """Return the format that a file's name implies; nothing for other files."""
    if file.name.startswith(("_", ".")) or not str(file).isprintable():
        return ""
    return FORMATS.get(bare(file).suffix.lower(), "")


def bare(file: Path) -> Path:
    """Return the name without the ending of its compression."""
    return file.with_suffix("") if file.suffix in COMPRESSED else file


def shown_in(file: Path, folder: Path) -> str:
    """Return a file's path in the project's folder; of one outside of it, its whole path."""
    try:
        return file.relative_to(folder.resolve()).as_posix()
    except ValueError:
        return file.as_posix()
