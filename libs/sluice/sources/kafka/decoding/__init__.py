"""Messages as rows of the declared columns."""
