"""The language of declarations: SQL expressions, types, names and times.

The base of all declarations is a frozen pydantic model that refuses unknown keys.
"""

from collections.abc import Iterable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationInfo

DRAFT = "is_draft"  # in the context of a validation


class Mistaken(ValueError):
    """Several mistakes in one value."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(dict.fromkeys(messages))
        super().__init__("; ".join(self.messages))


def is_draft(info: ValidationInfo) -> bool:
    """True if texts that can't be read are replaced, to find further mistakes."""
    return bool((info.context or {}).get(DRAFT))


class Model(BaseModel):
    """Immutable, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    # Fields that loading fills in, not keys that a user writes.
    LOADED: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def key_of(cls, field: str) -> str:
        """Return the key in YAML of a field."""
        return cls.model_fields[field].alias or field
