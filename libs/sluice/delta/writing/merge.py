"""Apply a changelog to its table by one MERGE, Spark's or delta-rs'.

Rows are found by their key, files by literal bounds of it. Both report how many rows they inserted,
updated and deleted.
"""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from pyspark.sql import DataFrame, SparkSession

from sluice.changes.diff import CHANGE
from sluice.delta.log.position import Head
from sluice.delta.places.lake_layout import table_at
from sluice.delta.writing.fence import Committed
from sluice.delta.writing.merge_bounds import arrow_bounds
from sluice.delta.writing.statistics import writer_properties
from sluice.errors import HistoryLost

Applied = tuple[int, ...]  # number of rows for each of CHANGES
CHANGES = ("inserted", "updated", "deleted")


def merge_spark(
    session: SparkSession,
    uri: str,
    rows: DataFrame,
    key: Sequence[str],
    bounds: Sequence[str],
    has_new: bool,
) -> Applied | None:
    """Merge by Spark; return None if Delta skipped it as a repeated batch."""
    columns = [c for c in rows.columns if c != CHANGE]
    rows.createOrReplaceTempView("_sluice_changelog")
    same = [f"t.`{c}` <=> s.`{c}`" for c in key]
    on = " AND ".join([*bounds, *same])
    sets = ", ".join(f"`{c}` = s.`{c}`" for c in columns if c not in key)
    update = f"WHEN MATCHED AND s.{CHANGE} = 'update' THEN UPDATE SET {sets}" if sets else ""
    names, values = ", ".join(f"`{c}`" for c in columns), ", ".join(f"s.`{c}`" for c in columns)
    said = session.sql(
        f"MERGE {'WITH SCHEMA EVOLUTION ' if has_new else ''}INTO delta.`{uri}` t "
        f"USING _sluice_changelog s ON {on} "
        f"WHEN MATCHED AND s.{CHANGE} = 'delete' THEN DELETE {update} "
        f"WHEN NOT MATCHED AND s.{CHANGE} = 'insert' THEN INSERT ({names}) VALUES ({values})"
    ).collect()
    return tuple(said[0][f"num_{change}_rows"] for change in CHANGES) if said else None


def merge_arrow(
    table: DeltaTable,
    rows: pa.Table,
    columns: Sequence[str],
    key: Sequence[str],
    properties: CommitProperties,
) -> Applied:
    """Merge by delta-rs, in one commit with these properties."""
    same = [f'(t."{c}" IS NOT DISTINCT FROM s."{c}")' for c in key]
    merge = table.merge(
        rows,
        predicate=" AND ".join([*arrow_bounds(table, rows, key), *same]),
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
        writer_properties=writer_properties(rows.select(columns).schema),
    ).when_matched_delete(f"s.\"{CHANGE}\" = 'delete'")
    values = {f'"{c}"': f's."{c}"' for c in columns if c not in key}
    if values:
        merge = merge.when_matched_update(values, predicate=f"s.\"{CHANGE}\" = 'update'")
    everything = {f'"{c}"': f's."{c}"' for c in columns}
    merge = merge.when_not_matched_insert(everything, predicate=f"s.\"{CHANGE}\" = 'insert'")
    said = merge.execute()
    return tuple(said[f"num_target_rows_{change}"] for change in CHANGES)


def check_applied(before: Head, done: Committed, applied: Applied) -> None:
    """Raise HistoryLost if the changelog's old rows were not in the table."""
    wanted = (done.inserted, done.updated, done.deleted)
    if wanted != applied:
        raise HistoryLost(
            f"a changelog of {wanted} inserts, updates and deletes changed {applied} rows: the "
            "table did not hold the rows that it was computed from",
            hint=f"run `sluice rebuild {table_at(before.uri)}`",
        )
