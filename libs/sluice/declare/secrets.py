"""Options that a configuration's files must not hold: secrets, and names of code.

Both may come from the environment, which is not controlled by the files' authors.
"""

import re
from collections.abc import Iterator
from typing import Any

from sluice.declare.code import check_option
from sluice.declare.text.document import Document, Where

SECRET = re.compile(
    r"password|secret|token|credential|jaas|(access|account|api)[._]?key", re.IGNORECASE
)
IN_URL = re.compile(r"[?&;](user|password)=[^?&;]|//[^/@\s]*:[^/@\s]+@", re.IGNORECASE)


def misplaced(data: Any, document: Document, where: Where) -> Iterator[tuple[Where, str]]:
    """Yield a table's options that hold a secret or may load code, with the mistake."""
    options = data.get("options") if isinstance(data, dict) else None
    for name, value in options.items() if isinstance(options, dict) else ():
        at = (*where, "options", name)
        own = document.own(at, value if isinstance(value, str) else "")
        if (SECRET.search(name) and (own or not isinstance(value, str))) or IN_URL.search(own):
            yield (
                at,
                f"`{name}` holds a secret, which must not be in a file: write ${{VARIABLE}}",
            )
        try:
            check_option(name, own)
        except ValueError as error:
            yield at, str(error)
