"""Row of a table or of a result, as a mapping from its columns to their values."""

from typing import Any

Row = dict[str, Any]
