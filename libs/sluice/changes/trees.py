"""Many conditions or relations joined as a balanced tree.

Spark Connect's messages may be nested a hundred levels deep, and a chain takes two for each part.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def balanced(joined: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Return all parts joined two by two, in their order; there must be at least one."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return joined(balanced(joined, parts[:middle]), balanced(joined, parts[middle:]))
