"""Secrets have no place in a configuration's files: they come from the environment."""

import re
from collections.abc import Iterator
from typing import Any

from sluice.specs.document import Document, Where

SECRET = re.compile(
    r"password|secret|token|credential|jaas|(access|account|api)[._]?key", re.IGNORECASE
)
IN_URL = re.compile(r"[?&;](user|password)=|//[^/@\s]*:[^/@\s]*@", re.IGNORECASE)


def written_secrets(data: Any, document: Document, where: Where) -> Iterator[tuple[Where, str]]:
    """The options of a table that hold a secret as it is, each with what to write instead."""
    options = data.get("options") if isinstance(data, dict) else None
    for name, value in options.items() if isinstance(options, dict) else ():
        at = (*where, "options", name)
        is_secret = SECRET.search(str(name)) or (isinstance(value, str) and IN_URL.search(value))
        if is_secret and at not in document.variables:
            yield (
                at,
                f"`{name}` holds a secret, which must not be in a file: write ${{VARIABLE}}",
            )
