"""Views in SQL: one SELECT, kept by a chain of the other kinds."""
