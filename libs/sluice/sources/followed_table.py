"""Declaration of a Delta table that somebody else writes, and the bounds of one batch."""

from pydantic import Field, field_validator

from sluice.language.model import Model
from sluice.language.path_pattern import check_path


class ForeignTable(Model):
    """A Delta table that somebody else writes.

    A batch takes whole commits. It ends before one that would pass `max_rows` or `max_bytes`.
    """

    path: str = Field(min_length=1)
    max_rows: int = Field(default=500_000, ge=1)
    max_bytes: int = Field(default=256_000_000, ge=1)

    @field_validator("path")
    @classmethod
    def _is_one_folder(cls, path: str) -> str:
        check_path(path)
        if "{" in path or "*" in path:
            raise ValueError(f"{path!r} is not the folder of one table: leave out {{}} and *")
        return path.rstrip("/") or path
