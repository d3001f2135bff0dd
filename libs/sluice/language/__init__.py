"""The language of declarations: SQL expressions, types, names and times."""
