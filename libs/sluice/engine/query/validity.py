"""Columns of a history: the time from which and until which each version is valid."""

FROM, TO, CURRENT = COLUMNS = ("valid_from", "valid_to", "is_current")
