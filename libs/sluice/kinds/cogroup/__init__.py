"""Declaration of `kind: cogroup`: one row per key over several streams and their aggregates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.declare.document import Where
from sluice.declare.meaning import SILENT, canonical, fingerprint, meant
from sluice.declare.table import Table
from sluice.declare.table_spec import Reference, View, Window
from sluice.language import Model
from sluice.language.expression import Aggregate, Expression, Select, SortKey
from sluice.language.names import Name

SHAPE = ""  # everything but its streams
OF_VIEW = frozenset({"streams", "having", "select"})  # the state does not depend on these


class Stream(Model):
    """One input of a cogroup, with its aggregates.

    `sequence`: the order of its rows, for aggregates that need one and name none.
    """

    # A stream without a key uses the view's.
    model_config = ConfigDict(json_schema_extra=lambda schema: schema["required"].remove("key"))

    from_: str = Field(alias="from")
    key: tuple[Expression, ...] = Field(min_length=1)
    aggregates: dict[Name, Aggregate] = Field(min_length=1)
    initial: dict[str, Any] = Field(default_factory=dict)
    where: Expression | None = None
    time: str | None = None
    sequence: tuple[SortKey, ...] = ()

    def in_order(self, aggregate: Aggregate) -> Aggregate:
        """The aggregate with its order."""
        if not aggregate.lacks_order:
            return aggregate
        return aggregate.model_copy(update={"order_by": self.sequence})


class Cogroup(View):
    """A row per key that has a row in any stream."""

    KIND: ClassVar[str] = "cogroup"
    HAS_STATE: ClassVar[bool] = True

    kind: Literal["cogroup"] = "cogroup"
    key: tuple[Name, ...] = Field(min_length=1)
    streams: dict[Name, Stream] = Field(min_length=1)
    having: Expression | None = None
    select: Select | None = None
    window: Window | None = None
    keep_empty: bool = False

    @model_validator(mode="after")
    def _times_need_a_window(self) -> Self:
        if self.retention and not self.window:
            raise ValueError("`retention` is how long a window is kept: it needs a `window`")
        timed = [name for name, stream in self.streams.items() if stream.time]
        if timed and not self.window:
            raise ValueError(f"`time` of the stream {timed[0]!r} needs a `window`")
        if self.keep_empty and self.window and self.window.type == "session":
            raise ValueError("`keep_empty` keeps keys without rows: a session is made of rows")
        return self

    @model_validator(mode="before")
    @classmethod
    def _streams_take_the_views_key(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("streams"), dict):
            return data
        streams = {
            name: {"key": data.get("key"), **stream} if isinstance(stream, dict) else stream
            for name, stream in data["streams"].items()
        }
        return {**data, "streams": streams}

    @property
    def windows(self) -> Window | None:
        return self.window

    @property
    def is_of_all(self) -> bool:
        """True if its one row, kept while empty, is of all rows: no stream's key reads a column."""
        keys = (expression for stream in self.streams.values() for expression in stream.key)
        return self.keep_empty and not self.window and not any(key.columns for key in keys)

    def references(self) -> Iterator[Reference]:
        for name, stream in self.streams.items():
            yield Reference(("streams", name, "from"), stream.from_)

    def own_code(self) -> Iterator[tuple[Where, str]]:
        for stream_name, stream in self.streams.items():
            for name, aggregate in stream.aggregates.items():
                if aggregate.is_python:
                    yield ("streams", stream_name, "aggregates", name), aggregate.function


def definition_by_part(
    table: Table, spec: Cogroup, keys: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the fingerprints of a state's parts: SHAPE, `stream`, `stream.aggregate`.

    A part that is the same in two definitions holds the same data in both. `keys`: keys of the
    inputs.
    """
    shape = {"key": list(spec.key), "types": [table.type_of(c) for c in table.key]}
    found = {SHAPE: {**shape, "declared": meant(spec, SILENT | spec.SILENT | OF_VIEW)}}
    for name, stream in spec.streams.items():
        silent = frozenset({"aggregates", "initial", "sequence"})
        input_id = table.reference(stream.from_)
        input_ = {"input": input_id, "key": list(keys[input_id])}
        found[name] = {**input_, "declared": meant(stream, silent)}
        for column, aggregate in stream.aggregates.items():
            ordered = stream.in_order(aggregate)
            found[f"{name}.{column}"] = {"aggregate": canonical(ordered)}
    return {name: fingerprint(part) for name, part in found.items()}
