"""Refusal of plans and values that only Spark may compute."""


class NotHere(Exception):
    """A plan or a value that only Spark may compute; the message names it."""


class BadValue(NotHere):
    """A value that an expression can't take, or only Spark can: Spark names it and its place."""


class DividedByZero(BadValue):
    """A division by zero, which Spark refuses, too. `place`: the part of the expression."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{place!r}: {what}" if place else what)
        self.what, self.place = what, place
