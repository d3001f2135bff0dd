"""Select: rows that meet a condition, with chosen columns."""
