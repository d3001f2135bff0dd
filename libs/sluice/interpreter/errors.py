"""Refusal of what only Spark may answer."""


class NotHere(Exception):
    """A plan or a value that only Spark may answer; the message names it."""
