"""What a batch has computed and will commit: in this process as Arrow, or in Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from sluice.runtime.plan import BatchPlan
from sluice.storage.commit import Committed

Changelog: TypeAlias = DataFrame | pa.Table


@dataclass(frozen=True)
class Whole:
    """All rows of a table by its query.

    `expired`: rows that came too late for their windows. `is_filed`: they lie as the table's files
    are to.
    """

    rows: DataFrame
    expired: int = 0
    is_filed: bool = False


@dataclass(frozen=True)
class Computed:
    """The changelog of a node, and what there is to say about how it was found.

    `strategy`: the way that was taken, where the plan left it open. `shown`: of a state, the
    changelog of the view over it, where it came out of the same pass. `rows`: how many the
    changelog may have, where what was read does not tell. `is_projection`: each of them comes from
    one row of the feed, or of what is kept already, so to compute it twice costs less than to keep
    it. `is_filed`: its rows lie as the table's files are to.
    """

    changelog: Changelog
    strategy: str = ""
    refills: int = 0
    recomputed: int | None = None
    expired: int = 0
    warnings: tuple[str, ...] = ()
    shown: Changelog | None = None
    rows: int | None = None
    is_projection: bool = False
    is_filed: bool = False


@dataclass(frozen=True)
class Carried:
    """A view's changelog that its state's batch has computed along with its own.

    It stands for one step of the state, from the version `since` which its rows did not change to
    `version`. A view that is to take another step computes its own.
    """

    changelog: Changelog
    state: str
    since: int
    version: int

    @classmethod
    def after(cls, plan: BatchPlan, computed: Computed, done: Committed) -> "Carried | None":
        """What a state's batch hands on."""
        if computed.shown is None or plan.before is None:
            return None
        return cls(computed.shown, plan.node.id, plan.before.data_version, done.version)

    def is_of(self, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """Whether it is what these versions to consume amount to."""
        after, upto = ranges.get(self.state, (-1, -1))
        return len(ranges) == 1 and self.since <= after and upto == self.version
