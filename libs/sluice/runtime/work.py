"""What computing a batch leaves behind: rows held until they are committed, counts to report."""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.storage.local import plain, to_arrow


@dataclass
class Work:
    """Of one batch. `recomputed`: groups that merging could not follow; None where none merged."""

    recomputed: int | None = None
    _held: list[DataFrame] = field(default_factory=list)

    def hold(self, session: SparkSession, rows: DataFrame, *, small: bool) -> DataFrame:
        """`rows`, computed once: small ones in this process, others where Spark caches."""
        if small:
            return session.createDataFrame(plain(to_arrow(rows)), rows.schema)
        self._held.append(rows.persist())
        return self._held[-1]

    def count(self, rows: DataFrame) -> int:
        """How many rows there are. One Spark job."""
        return int(rows.agg(F.count(F.lit(1))).collect()[0][0])

    def release(self) -> None:
        """Let go of what was held."""
        while self._held:
            self._held.pop().unpersist()
