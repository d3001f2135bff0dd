"""Refusal of what only Spark may answer."""


class NotHere(Exception):
    """A plan or a value that only Spark may answer; the message names it."""


class BadValue(NotHere):
    """A value that an expression can't take, or only Spark can: Spark names it and its place."""
