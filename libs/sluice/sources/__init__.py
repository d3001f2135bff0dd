"""Sources: rows that arrive over time."""
