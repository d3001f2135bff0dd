"""Plan of a batch, as data: its inputs and strategy, and what all batches of a project share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice.declare.project import Project
from sluice.declare.settings import SparkSettings
from sluice.declare.table import Graph
from sluice.delta.log.files import FeedSize
from sluice.delta.log.position import Head, Pins
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.reading.local import nullable, to_arrow
from sluice.delta.writing.own_commits import Committed
from sluice.engine.operator import Maintained
from sluice.interpreter import drop_rows, is_here
from sluice.limits import Limits


@dataclass(frozen=True)
class Context:
    """Shared values, resolved once where a command or a job begins.

    `timezones`: those in which messages show the intervals of each pipeline.
    """

    lake: LakeLayout
    graph: Graph
    settings: SparkSettings
    limits: Limits
    timezones: Mapping[str, str]

    @classmethod
    def of(cls, project: Project) -> "Context":
        """Return the context of a loaded project."""
        zones = {pipeline.name: pipeline.timezone for pipeline in project.pipelines.values()}
        return cls(layout(project), project.graph, project.spark, project.limits, zones)


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


ChangelogRows: TypeAlias = DataFrame | pa.Table


def as_rows(session: SparkSession, changelog: ChangelogRows) -> DataFrame:
    """Return a changelog as rows of the session."""
    return session.createDataFrame(changelog) if isinstance(changelog, pa.Table) else changelog


@dataclass(frozen=True)
class WholeTable:
    """All rows of a table by its query.

    `expired`: rows that arrived too late for their windows. `is_filed`: the rows are laid out as
    the table's files should be.
    """

    rows: DataFrame
    expired: int = 0
    is_filed: bool = False


@dataclass(frozen=True)
class BatchResult:
    """Changelog of a node, and notes on how it was found.

    `strategy`: the way that was taken, if the plan left it open. `shown`: the changelog of the view
    over a state, if the same pass produced it. `rows`: how many the changelog may have, if what was
    read does not show it. `is_projection`: each row comes from one row of the feed or of the kept
    rows. Computing these rows twice costs less than caching them. `is_filed`: the rows are laid out
    as the table's files should be.
    """

    changelog: ChangelogRows
    strategy: str = ""
    refills: int = 0
    recomputed: int | None = None
    expired: int = 0
    warnings: tuple[str, ...] = ()
    shown: ChangelogRows | None = None
    rows: int | None = None
    is_projection: bool = False
    is_filed: bool = False


@dataclass(frozen=True)
class Carried:
    """Changelog of a view, computed by its state's batch along with its own.

    It covers one step of the state: from `since`, the last version that changed its rows, to
    `version`. A view that takes another step computes its own.
    """

    changelog: ChangelogRows
    state: str
    since: int
    version: int

    @classmethod
    def after(cls, plan: BatchPlan, result: BatchResult, done: Committed) -> "Carried | None":
        """Return the view's changelog from a state's batch, if any."""
        if result.shown is None or plan.before is None:
            return None
        return cls(result.shown, plan.node.id, plan.before.data_version, done.version)

    def is_of(self, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """True if it covers exactly these versions to consume."""
        after, upto = ranges.get(self.state, (-1, -1))
        return len(ranges) == 1 and self.since <= after and upto == self.version


def settle(session: SparkSession, result: BatchResult) -> BatchResult:
    """Return the computed rows, in memory if this process computes them.

    From here on, nothing is left to Spark, and what they were computed from is dropped.
    """
    if not is_here(session):
        return result
    changelog = result.changelog
    if isinstance(changelog, DataFrame):
        schema = nullable(changelog.schema)
        changelog = session.createDataFrame(to_arrow(changelog), schema)
    shown = result.shown
    if isinstance(shown, DataFrame):
        shown = to_arrow(shown)
    drop_rows(session)
    return replace(result, changelog=changelog, shown=shown)
