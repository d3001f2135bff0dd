"""Knowledge of tables besides their rows: definition, state, next batch, why a row is so.

A token that may not see a pipeline learns nothing of its tables but their names, where they are
inputs of tables that it sees.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from http import HTTPStatus
from pathlib import PurePath
from threading import Lock
from typing import Any

import pyarrow as pa

from sluice.declare.table import Table
from sluice.delta.places.lake_layout import leftovers, undeclared_tables
from sluice.language.names import RESERVED_PREFIX, declared_id
from sluice.read.changelog import Changelog
from sluice.read.commits import Commit, back_from
from sluice.read.naming import Given, naming_options, origin, row_of
from sluice.read.status import TableStatus, status
from sluice.report.health import status_records
from sluice.serve.answers import Answer, Refused, to_json
from sluice.serve.questions import Parameter, Question, parse

SHOWN = 5  # rows of each table that a row comes from
MOST = 1_000
NO_ROW = "NoSuchRow"  # type of a refusal to explain
HIDDEN = "rows of this table are not shown: this token may not see its pipeline"
_lock = Lock()


@contextmanager
def _session() -> Iterator[None]:
    """Let one plan or explanation use the session of the interpreter; give its memory back."""
    with _lock:
        try:
            yield
        finally:
            pa.default_memory_pool().release_unused()


def tables(asked: Question) -> Answer:
    """Return every table with its kind, key, columns, version and freshness."""
    found = {one.table: one for one in status(asked.lake.project, asked.graph.tables.values())}
    said = [_describe(asked, table, found.get(table.id)) for table in asked.graph.tables.values()]
    return Answer(to_json({"tables": said}))


def table(asked: Question) -> Answer:
    """Return one table, with its definition and expectations."""
    found, rules = asked.table, asked.table.spec.expectations
    stands = next(iter(status(asked.lake.project, [found])), None)
    return Answer(
        to_json(
            _describe(asked, found, stands)
            | {
                "inputs": list(found.inputs),
                "expectations": [{"says": r.label, "on_failure": r.on_failure} for r in rules],
                "definition": asked.lake.project.shown_definition(found),
            }
        )
    )


def _describe(asked: Question, found: Table, stands: TableStatus | None) -> dict[str, Any]:
    is_keyed = not any(name.startswith(RESERVED_PREFIX) for name in found.named_key)
    return {
        "table": found.id,
        "pipeline": found.pipeline,
        "kind": found.declared_kind,
        "description": found.description,
        "key": list(found.named_key) if is_keyed else [],  # or rows differ in hidden columns
        "columns": {name: type_.replace(", ", ",") for name, type_ in found.columns.items()},
        "version": stands.version if stands else None,
        "rows": stands.rows if stands else None,
        "state": stands.state if stands else "computed when it is read",
        "problem": asked.says(stands.problem) if stands else "",
        "freshness": _freshness(stands) if stands else None,
    }


def _freshness(stands: TableStatus) -> dict[str, Any]:
    waiting = [lag.since for lag in stands.lag if lag.since]
    return {
        "last_batch_at": stands.last.at if stands.last else None,
        "pending": {lag.input: lag.versions for lag in stands.lag},
        "behind_since": min(waiting, default=None),
    }


def states(asked: Question) -> Answer:
    """Return the status of every table, as `sluice status --json`, and what is left out."""
    project, chosen = asked.lake.project, list(asked.graph.tables.values())
    broken = {*project.graph.broken.values()}  # whose tables nobody knows
    others = () if "" in broken else filter(asked.sees, undeclared_tables(project))
    undeclared = [name for name in others if name.partition(".")[0] not in broken]
    said = status_records(project, status(project, chosen), undeclared, leftovers(project, chosen))
    left_out = {"pipelines": sorted(map(_name, asked.broken.items())), "mistakes": asked.mistakes}
    found = {"tables": asked.hide(said), "left_out": left_out, "unread": asked.why_unread}
    return Answer(to_json(found))


def _name(broken: tuple[str, str]) -> str:
    """Return the name of a pipeline that is left out; that of its file if it names none."""
    file, name = broken
    return name or PurePath(file).stem


def plan(asked: Question) -> Answer:
    """Return what the next batch of each table would read, as `sluice plan --json`."""
    from sluice.operate.explain import explain_all

    chosen = [asked.graph.table(asked.get("table"))] if asked.get("table") else None
    with _session():
        steps, _ = explain_all(asked.lake.project, chosen or list(asked.graph.tables.values()))
    return Answer(to_json({"steps": asked.hide([asdict(step) for step in steps])}))


def row_parameters() -> Iterator[Parameter]:
    """Yield the parameters that only some kinds take to name a row."""
    for name, option in naming_options().items():
        yield Parameter(name, option.help.replace("--partition", "`partition`"), option.type)


def _given(asked: Question) -> Given:
    """Return the values that name a row of the table. Raises Refused if there are none."""
    others = {name: asked.get(name) for name in naming_options()}
    key = tuple(parse(text) for text in asked.get("key", ()))
    given = Given.of(key, asked.partition, others)
    if given == Given():
        raise Refused(HTTPStatus.BAD_REQUEST, "no row is named", "give key=VALUE, once per column")
    return given


def _besides(asked: Question, how: str) -> str:
    return f"ask `/v1/tables/{asked.address}/{how}` with the same parameters"


def why(asked: Question) -> Answer:
    """Return the commit that last changed a row and the rows it comes from, as `sluice why`."""
    from sluice.operate.why import row_record, sources_of

    changelog = Changelog.open(asked.lake, asked.address, asked.get("version"))
    row = row_of(changelog, _given(asked))
    found = origin(changelog, row, asked.get("when")) if row else None
    if row is None or found is None:
        message = f"{asked.address} never had such a row"
        raise Refused(HTTPStatus.NOT_FOUND, message, _besides(asked, "why-not"), type_=NO_ROW)
    most = min(asked.get("rows", SHOWN), MOST)
    with _session():
        walks = most and found.after is not None
        said = row_record(found, sources_of(changelog, row) if walks else [], most)
    reads = [read for read in said["reads"] if asked.sees(read["source"])]
    sources = [_shown(asked, source) for source in said["from"]]
    return Answer(to_json(said | {"reads": reads, "from": sources}))


def _shown(asked: Question, source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part of an explanation: no rows of hidden pipelines, and no paths of files."""
    if not asked.sees(source["table"]):
        return {"table": source["table"], "count": source["count"], "rows": [], "untraced": HIDDEN}
    deliveries = [
        one | {"files": [asked.lake.project.delivered(file) for file in one["files"]]}
        for one in source["deliveries"]
    ]
    untraced = source["untraced"] and asked.says(source["untraced"])
    return {**source, "deliveries": deliveries, "untraced": untraced}


def why_not(asked: Question) -> Answer:
    """Return what keeps a row out of a table, as `sluice why-not`."""
    from sluice.operate.why import reason_record
    from sluice.operate.why_not import reasons_of

    with _session():
        changelog = Changelog.open(asked.lake, asked.address, asked.get("version"))
        found = reasons_of(changelog, _given(asked))
        if found is None:
            message = f"{asked.address} has that row"
            raise Refused(HTTPStatus.NOT_FOUND, message, _besides(asked, "why"), type_=NO_ROW)
        most = min(asked.get("rows", SHOWN), MOST)
        reasons = [_reason(asked, reason_record(one, most)) for one in found.reasons]
    return Answer(to_json({"table": found.table, "version": found.version, "reasons": reasons}))


def _reason(asked: Question, said: dict[str, Any]) -> Mapping[str, Any]:
    """Return a reason without paths; without rows if they come from hidden pipelines."""
    if not asked.sees(said["table"]):
        return {"table": said["table"], "why": HIDDEN}
    said["what"] = asked.says(said["what"])
    for row in said["rows"] if said["why"] == "quarantined" else ():
        row["file"] = row["file"] and asked.lake.project.delivered(row["file"])
        row["reason"] = row["reason"] and asked.says(row["reason"])
    table = asked.graph.table(declared_id(said["table"]))
    inputs = (name for one in (table, *table.parts) for name in one.inputs)
    return said if all(map(asked.sees, inputs)) else said | {"rows": [], "untraced": HIDDEN}


METRICS: Mapping[str, tuple[str, str]] = {
    "version": ("gauge", "Version of the table."),
    "rows": ("gauge", "Rows of the table."),
    "quarantined_rows": ("gauge", "Rows in the table's quarantine."),
    "pending_inputs": ("gauge", "Inputs with versions that the table does not reflect."),
    "pending_versions": ("gauge", "Versions of inputs that the table does not reflect."),
    "behind_seconds": ("gauge", "Age of the oldest change that the table does not reflect."),
    "failed": ("gauge", "1 if the last attempt failed or the table is stopped."),
    "last_batch_timestamp_seconds": ("gauge", "Time of the last batch."),
    "last_batch_seconds": ("gauge", "Duration of the last batch."),
    "last_batch_read_bytes": ("gauge", "Bytes of changes that the last batch read."),
    "last_batch_written_bytes": ("gauge", "Bytes that the last batch wrote."),
}


Samples = tuple[
    str, str, str, Mapping[str, float | None]
]  # of a metric: name, type, meaning, values


def metrics(asked: Question, own: Iterable[Samples]) -> Iterator[str]:
    """Yield the state of every table, and the server's `own`, in Prometheus' text format."""
    now = time.time()
    found = status(asked.lake.project, asked.graph.tables.values())
    measured = {one.table: dict(_measure(asked, one, now)) for one in found}
    tables: Iterator[Samples] = (
        (f"table_{name}", *about, {f'{{table="{t}"}}': v.get(name) for t, v in measured.items()})
        for name, about in METRICS.items()
    )
    sound = {name: 0 for name in asked.lake.project.pipelines if asked.token.sees(name)}
    named = sound | dict.fromkeys(map(_name, asked.broken.items()), 1)
    pipelines = {f'{{pipeline="{name}"}}': value for name, value in named.items()}
    what = "1 if the pipeline is left out, for mistakes in its file or of those that it reads."
    left_out: Samples = ("pipeline_left_out", "gauge", what, pipelines)
    what = "1 if the declarations can't be read, and those of before are served."
    unread: Samples = ("unread", "gauge", what, {"": int(asked.unread is not None)})
    for name, kind, about, values in (*tables, left_out, unread, *own):
        yield f"# HELP sluice_{name} {about}\n# TYPE sluice_{name} {kind}\n"
        yield from (f"sluice_{name}{of} {v:.15g}\n" for of, v in values.items() if v is not None)


def _measure(asked: Question, one: TableStatus, now: float) -> Iterator[tuple[str, float | None]]:
    since = [lag.since.timestamp() for lag in one.lag if lag.since]
    yield "version", one.version
    yield "rows", one.rows
    yield "quarantined_rows", one.quarantined
    yield "pending_inputs", len(one.lag)
    yield "pending_versions", sum(lag.versions for lag in one.lag)
    yield "behind_seconds", max(now - min(since), 0) if since else 0
    yield "failed", int(bool(one.failure or one.problem))
    if one.last and one.version is not None:
        uri = asked.lake.uri(asked.graph.tables[one.table])
        yield "last_batch_timestamp_seconds", one.last.at.timestamp()
        made = (c for c in back_from(uri, one.version) if c.position and c.position.cost)
        if commit := next(made, None):
            yield from _cost(commit)


def _cost(commit: Commit) -> Iterator[tuple[str, float]]:
    cost = commit.position.cost if commit.position else {}
    yield "last_batch_seconds", cost["seconds"]
    yield "last_batch_read_bytes", cost["read"]
    yield "last_batch_written_bytes", commit.written
