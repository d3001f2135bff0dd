"""What every declared thing is: a frozen pydantic model that refuses keys that it does not know."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable, and closed: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    # Fields that loading fills in: no keys for a user to write.
    LOADED: ClassVar[frozenset[str]] = frozenset()
