"""Base of all declarations: a frozen pydantic model that refuses unknown keys."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    # Fields that loading fills in, not keys that a user writes.
    LOADED: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def key_of(cls, field: str) -> str:
        """Return the key in YAML of a field."""
        return cls.model_fields[field].alias or field
