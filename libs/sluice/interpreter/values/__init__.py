"""Values, columns and their types: rows of Spark's types as Python's, and casts between them."""
