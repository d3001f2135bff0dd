"""The query of a table: its operator, and what live windows, lateness and identities mean."""
