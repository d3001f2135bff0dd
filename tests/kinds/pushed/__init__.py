"""A kind of source for one test: files that somebody has marked."""

from typing import ClassVar, Literal

from sluice.language import Model
from sluice.sources import Source


class By(Model):
    name: str
    text: str = ""


class Pushed(Source):
    KIND: ClassVar[str] = "pushed"

    kind: Literal["pushed"] = "pushed"
    by: Literal["nobody", "anybody", "all"] | By = "nobody"
