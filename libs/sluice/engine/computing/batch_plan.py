"""Plan of a batch, as data: its inputs and strategy, before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sluice.delta.log.feed_size import FeedSize
from sluice.delta.log.position import Head, Pins
from sluice.engine.query.maintained import Maintained


class Strategy(StrEnum):
    """Strategies of a batch, if its kind defines none."""

    BUILD = "build"  # no table yet: the whole query
    ROW_WISE = "row-wise"  # only the changed rows
    RECOMPUTE = "recompute"  # touched groups from every input
    WITH_STATE = "with its state"  # a view, from the changes that its state's batch has seen


Way = tuple[str, str]  # a strategy of the kind, and its reason


@dataclass(frozen=True)
class BatchPlan:
    """One batch of one node. `ranges`: input -> (from, to] versions with new data to read.

    `growing`: inputs in `ranges` that only got new rows. `replaces`: a table of another definition
    that nobody has read; the build takes its place.
    """

    node: Maintained
    uri: str
    before: Head | None
    strategy: str
    reason: str
    pins: Pins = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    growing: frozenset[str] = frozenset()
    references: Pins = field(default_factory=dict)
    frontier: Mapping[str, int] = field(default_factory=dict)
    size: FeedSize = field(default_factory=FeedSize)
    waiting_for: str = ""
    replaces: Head | None = None

    @property
    def recorded(self) -> Pins:
        """Versions of the inputs that the table reflects now."""
        return self.before.position.inputs if self.before and self.before.position else {}

    @property
    def looked_up(self) -> Pins:
        """Versions of everything that is read: inputs and references."""
        return {**self.pins, **self.references}

    @property
    def is_pending(self) -> bool:
        """True if there is anything to do."""
        return not self.waiting_for and (self.strategy == Strategy.BUILD or bool(self.ranges))
