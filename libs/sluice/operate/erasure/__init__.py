"""Removal of a person: from sources, logs and files, with a receipt."""
