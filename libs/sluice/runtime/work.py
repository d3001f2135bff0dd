"""What computing a batch leaves behind: rows held until they are committed, counts to report."""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.storage.local import plain, to_arrow


@dataclass
class Work:
    """Of one batch.

    `expired`: rows that came too late for their windows. `rows`: how many the changelog may have,
    where what was read does not tell. `is_projection`: each of its rows comes from one row of the
    feed. `is_filed`: its rows lie as the table's files are to.
    """

    expired: int = 0
    rows: int | None = None
    is_projection: bool = False
    is_filed: bool = False
    _held: list[DataFrame] = field(default_factory=list)

    def hold(self, session: SparkSession, rows: DataFrame, *, small: bool) -> DataFrame:
        """`rows`, computed once: small ones in this process, others where Spark caches."""
        if small:
            return session.createDataFrame(plain(to_arrow(rows)), rows.schema)
        self._held.append(rows.persist())
        return self._held[-1]

    def expire(self, late: DataFrame) -> None:
        """Note what `operators.lateness` finds. One Spark job."""
        self.expired = int(late.collect()[0][0] or 0)

    def count(self, rows: DataFrame) -> int:
        """How many rows there are. One Spark job."""
        return int(rows.agg(F.count(F.lit(1))).collect()[0][0])

    def release(self) -> None:
        """Let go of what was held."""
        while self._held:
            self._held.pop().unpersist()
