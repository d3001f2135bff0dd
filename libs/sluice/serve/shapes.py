"""Shapes of the answers in JSON, from which OpenAPI describes them; rows have those of tables."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_type_hints

from pydantic import TypeAdapter, create_model

from sluice.engine.next_batch import NextBatch
from sluice.read.status import TableStatus
from sluice.report.health import Health

NONE: Mapping[str, Any] = {}
many = list.__class_getitem__
Row = dict[str, Any]
Names = list[str]
Rows = list[Row]


def shape(name: str, rare: Mapping[str, Any] = NONE, /, **fields: Any) -> Any:
    """Return an object of these fields; the `rare` ones may be missing."""
    every = {n: (t, ...) for n, t in fields.items()} | {n: (t, None) for n, t in rare.items()}
    return create_model(name, **every)  # type: ignore[call-overload]


_of = {"table": str, "version": int}
_freshness = {"last_batch_at": datetime | None, "behind_since": datetime | None}
_about: Any = {
    **dict.fromkeys(("table", "pipeline", "kind", "description", "state", "problem"), str),
    "key": Names,
    "columns": dict[str, str],
    "version": int | None,
    "rows": int | None,
    "freshness": shape("Freshness", **_freshness, pending=dict[str, int]) | None,
}
_rules = many(shape("Expectation", says=str, on_failure=str))
_commit: Any = {"version": int, "at": datetime, "batch": int | None, "run": str | None, "kind": str}
_made = shape("Commit", **_commit)
_versions = {"after_version": int | None, "to_version": int | None}
_read = shape("Read", **_versions, source=str, count=int, commits=many(_made))
_interval = {"interval_start": datetime, "interval_end": datetime}
_delivery = shape("Delivery", **_interval, rows=int, commit=_made | None, files=Names)
_shown: Any = {"version": int | None, "deliveries": many(_delivery)}
_source = shape("From", _shown, table=str, count=int, rows=Rows, untraced=str | None)
_why: Any = {"change": str, "before": Row | None, "after": Row | None, "reads": many(_read)}
_found = {"what": str, "count": int | None, "rows": Rows, "others": Rows, "untraced": str}
_ranks = dict[str, Row | Rows]
_ranking = shape("Ranking", partition=Row, ranks=_ranks)
_names = {"key": Names, "by_time": Names | None, "partition": Names | None}
_state = shape("State", **get_type_hints(TableStatus), state=str, quality=Health | None)
_rows = shape("Rows", **_of, rows=Rows, cursor=str | None)

REFUSAL = shape("Refusal", error=shape("Error", type=str | None, message=str, hint=str))
ANSWERS: Mapping[str, Any] = {  # of operations, by their ids
    "tables": shape("Tables", tables=many(shape("Table", **_about))),
    "table": shape("Definition", **_about, inputs=Names, expectations=_rules, definition=Row),
    "rows": _rows,
    "top": shape("Ranks", **_of, ranks=_ranks)
    | shape("Rankings", **_of, partitions=many(_ranking)),
    "count": shape("Count", **_of, count=int),
    "at": shape("At", **_of, **_names, columns=dict[str, str], rows=int, is_stored=bool, page=int),
    "changes": _rows,
    "why": shape("Why", **_commit, **_why, **{"from": many(_source)}),
    "why_not": shape("WhyNot", **_of, reasons=many(shape("Reason", _found, table=str, why=str))),
    "plan": shape("Plan", steps=list[NextBatch]),
    "states": shape(
        "Status",
        tables=many(_state),
        left_out=shape("LeftOut", pipelines=Names, mistakes=Names),
        unread=Names,
    ),
    "healthz": shape("Readiness", {"reasons": Names}, status=str),
}


def describe_answers() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of each operation's answer, and those that they refer to, by name."""
    every = [(name, "serialization", TypeAdapter(of)) for name, of in ANSWERS.items()]
    every.append(("refusal", "serialization", TypeAdapter(REFUSAL)))
    place = "#/components/schemas/{model}"
    found, named = TypeAdapter.json_schemas(every, ref_template=place)  # type: ignore[arg-type]
    return {name: schema for (name, _), schema in found.items()}, named["$defs"]
