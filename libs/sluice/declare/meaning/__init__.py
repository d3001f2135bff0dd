"""Meaning of tables: what their fingerprints, names and columns represent."""
