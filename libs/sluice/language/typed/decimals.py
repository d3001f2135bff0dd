"""Precision and scale of Spark's decimal arithmetic."""

import re
from dataclasses import dataclass
from typing import Self

MOST = 38
MINIMUM_SCALE = 6
OF_INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
TEXT = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Decimal:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    @classmethod
    def of(cls, type_: str) -> Self | None:
        """Return the type's decimal, or the one that holds an integer type; None for others."""
        match = TEXT.fullmatch(type_)
        if match:
            return cls(int(match[1]), int(match[2]))
        return cls(OF_INTEGERS[type_], 0) if type_ in OF_INTEGERS else None

    @classmethod
    def fitted(cls, precision: int, scale: int) -> Self:
        """Cut a type to 38 digits as Spark does: reduce the scale, but not below 6."""
        if precision <= MOST:
            return cls(precision, scale)
        whole = precision - scale
        return cls(MOST, max(MOST - whole, min(scale, MINIMUM_SCALE)))

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    def plus(self, other: "Decimal") -> "Decimal":
        scale = max(self.scale, other.scale)
        return self.fitted(max(self.whole, other.whole) + scale + 1, scale)

    def times(self, other: "Decimal") -> "Decimal":
        return self.fitted(self.precision + other.precision + 1, self.scale + other.scale)

    def over(self, other: "Decimal") -> "Decimal":
        scale = max(MINIMUM_SCALE, self.scale + other.precision + 1)
        return self.fitted(self.whole + other.scale + scale, scale)

    def modulo(self, other: "Decimal") -> "Decimal":
        scale = max(self.scale, other.scale)
        return self.fitted(min(self.whole, other.whole) + scale, scale)

    def wider(self, other: "Decimal") -> "Decimal":
        """Return the decimal that holds both; places beyond 38 digits are dropped, down to none."""
        whole, scale = max(self.whole, other.whole), max(self.scale, other.scale)
        return Decimal(min(whole + scale, MOST), min(scale, MOST - whole))

    def sum(self) -> "Decimal":
        return Decimal(min(self.precision + 10, MOST), self.scale)

    def average(self) -> "Decimal":
        """Return the type of an average: four more places, and 38 digits if the sum has 38."""
        precision = MOST if self.sum().precision == MOST else self.precision + 4
        return Decimal(precision, min(self.scale + 4, MOST))

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"
