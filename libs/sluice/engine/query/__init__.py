"""The query of a table: its operator, and the rules of live windows, lateness and identities."""
