"""Functions of a user's own to sort by."""

from os.path import commonprefix  # noqa: F401 - a function that was not made to be sorted by


def surprise(v: int | None, w: str | None) -> float | None:
    """How far a number is from the length of a word."""
    return None if v is None else abs(v - len(w or "")) / 2


def unsaid(v: int | None):
    """It does not say what it returns."""
    return v
