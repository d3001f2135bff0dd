"""One published Java artifact, with its origin and checksum."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact, as published."""

    name: str
    version: str
    size: int
    sha256: str
    organisation: str = "io.delta"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"
