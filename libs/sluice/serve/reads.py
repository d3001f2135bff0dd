"""Reads of rows over HTTP, by the same readers as `sluice.open`.

Each read first fixes the versions of the stored tables behind it. A page ends at its limit of rows
or bytes. Its cursor holds these versions and the last row. So the next page is of the same
versions, whatever was committed since, and the server keeps nothing: it may end and start again
between two pages. A version that was vacuumed is reported, not replaced. A request that names a
version itself is answered by that one.

Cursors are not signed. All in them is checked as if it came from the client, and a cursor can name
nothing that a request could not: what a token may see is checked for each request.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from hashlib import sha256
from http import HTTPStatus
from typing import Any, TypeVar

import pyarrow as pa

from sluice.declare.registry import kind
from sluice.delta.log.opened import commit_of, newest_version
from sluice.delta.places.lake_layout import DamagedLog, MissingFiles
from sluice.errors import HistoryLost, UsageError
from sluice.language.interval import parse_time
from sluice.language.names import Row, internal
from sluice.read.keyed import Rows
from sluice.read.lake import Lake, verbs_of
from sluice.read.scan import Overdue
from sluice.read.snapshot import NotBuilt, SnapshotExpired, open_delta
from sluice.read.values import check_columns, type_name
from sluice.read.where import columns_in
from sluice.serve.answers import AT_ONCE, VERSION, Answer, Format, Page, Refused, to_json
from sluice.serve.questions import Question, parse_key, refuse, took_long

T = TypeVar("T")
TIMES, KEYS, NONE = "time", "key", "none"  # orders of rows
OF_KEYS = ("key", "from", "to", "key_from", "key_to")
ASIDE = ("reverse", "backward_iteration", "where", "cursor")  # of no use to one row
ONE_ROW = "a whole key needs nothing else"
OF_TIMES = "windows overlap times, which order=time reads"
UNORDERED = "order=none reads rows as they are stored"
AGAIN = "begin again without cursor, version and as_of, with the newest version"


@dataclass(frozen=True)
class Pinned:
    """A lake at the versions that a question is answered by.

    `uris`: of the stored tables that it reads. `after`: the row after which it continues.
    """

    lake: Lake
    asked: Question
    uris: Mapping[str, str]
    versions: Mapping[str, int]
    after: str | None
    is_past: bool

    def cursor(self, after: str) -> str:
        """Return the cursor after a row of the readers' own."""
        pins = {t: [incarnation(t, self.uris[t]), v] for t, v in self.versions.items()}
        body = json.dumps([pins, _identify(self.asked), after])
        return urlsafe_b64encode(body.encode()).decode().rstrip("=")


def pin(asked: Question) -> Pinned:
    """Fix the versions of the tables behind a question: its own, its cursor's or time's, or newest.

    In an order, a cursor of another version names a row all the same; else it is the row's number.
    """
    uris, after, versions = uris_of(asked), None, dict[str, int]()
    version, cursor, moment = (asked.get(name) for name in ("version", "cursor", "as_of"))
    if version is not None and moment is not None:
        raise refuse("give either version or as_of")
    if cursor is not None:
        versions, after = _decode(cursor, _identify(asked), uris)
    if version is not None:
        if not asked.table.is_stored and not asked.is_internal:
            asked.lake.table(asked.address, version=version)  # which is refused
        versions = {asked.address: version}
    if versions:
        for table, number in versions.items():
            _check_version(table, uris[table], number)
    elif moment is not None:
        then = asked.lake.at(moment)
        known = {table: then.version_of(table) for table in uris}
        versions = {table: v for table, v in known.items() if v is not None}
    else:
        versions = {t: v for t, uri in uris.items() if (v := newest_version(uri)) >= 0}
    is_past = any(one is not None for one in (version, cursor, moment))
    return Pinned(asked.lake.pinned(versions), asked, uris, versions, after, is_past)


def _identify(asked: Question) -> str:
    """Return what distinguishes a question from others, but not its pages from each other."""
    apart = {"cursor", "limit", "format", "columns"}
    apart |= set() if asked.get("order") == NONE else {"version"}
    given = {n: v for n, v in sorted(asked.values.items()) if n not in apart}
    return sha256(json.dumps([asked.address, given]).encode()).hexdigest()[:12]


def uris_of(asked: Question) -> dict[str, str]:
    """Return the places of the stored tables that a question reads."""
    if asked.is_internal:
        return {asked.address: internal(asked.lake.uri(asked.table), asked.suffix)}
    graph = asked.lake.project.graph
    return {t: asked.lake.uri(graph.tables[t]) for t in graph.stored([asked.table.id])}


def incarnation(table: str, uri: str) -> str:
    """Return what distinguishes the table at a URI from one that is created there later."""
    return str(open_delta(table, uri).metadata().id).replace("-", "")[:12]


def _decode(cursor: str, question: str, uris: Mapping[str, str]) -> tuple[dict[str, int], str]:
    """Return the versions in a cursor of that question, and the row after which it continues."""
    try:
        pins, of, after = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        versions = {table: version for table, (_, version) in pins.items()}
        is_sound = all(type(v) is int and v >= 0 for v in versions.values())
    except (ValueError, TypeError, AttributeError, RecursionError):
        is_sound = False
    if not is_sound or of != question or {*versions} != {*uris} or not isinstance(after, str):
        raise refuse(
            "the cursor is not one of this read",
            "repeat the request of the previous page, and add its cursor",
        )
    for table, (made, _) in pins.items():
        if incarnation(table, uris[table]) != made:
            raise Refused(HTTPStatus.GONE, f"{table} was dropped and created again", AGAIN)
    return versions, after


def _check_version(table: str, uri: str, version: int) -> None:
    """Raise Refused for a version that a table does not have, or not any more."""
    if commit_of(uri, version) is not None:
        return
    try:
        open_delta(table, uri, version)  # a checkpoint may show it
    except NotBuilt:
        raise
    except UsageError as error:
        if version > newest_version(uri):
            raise Refused.of(HTTPStatus.NOT_FOUND, error) from None
        raise Refused.of(HTTPStatus.GONE, error, AGAIN) from None


def at_versions(answer: Callable[[Question, Pinned], T]) -> Callable[[Question], T]:
    """Return a handler that fixes versions first.

    If files of the newest version go meanwhile, it reads the version that is then the newest.
    """

    @wraps(answer)
    def handler(asked: Question) -> T:
        for is_last in (False, True):
            pinned = pin(asked)
            try:
                return answer(asked, pinned)
            except (DamagedLog, MissingFiles):
                raise
            except HistoryLost as error:
                raise Refused.of(HTTPStatus.GONE, error, AGAIN) from None
            except (SnapshotExpired, FileNotFoundError):
                if pinned.is_past:
                    every = (f"version {v} of {t}" for t, v in pinned.versions.items())
                    what = f"{', '.join(every)} can't be read any more: files were vacuumed"
                    gone = SnapshotExpired(what)
                    raise Refused.of(HTTPStatus.GONE, gone, AGAIN) from None
                if is_last:
                    raise
        raise AssertionError

    return handler


def rows(asked: Question) -> Answer:
    """Return rows by key, by a range of keys or times, or page by page."""
    return read_rows(asked).answer(asked.format)


@at_versions
def read_rows(asked: Question, pinned: Pinned) -> Page:
    """Return the page of rows of a question."""
    if asked.where and (tested := columns_in(asked.where) & asked.hidden.keys()):
        what = f"a condition can't test {', '.join(sorted(tested))} of {asked.address}"
        raise refuse(what, "it is shown otherwise than it is stored: test another column")
    order = asked.get("order", TIMES if "window" in reading_verbs(asked) else KEYS)
    if order == TIMES:
        return _fetch(asked, pinned)
    if order not in (KEYS, NONE):
        raise refuse(f"order={order}: an order is {KEYS}, {NONE}, or {TIMES}")
    _refuse_others(asked, OF_TIMES, "overlapping")
    is_backward = bool(asked.get("backward_iteration"))
    table = pinned.lake.table(asked.address, backward_iteration=is_backward)
    if order == NONE:
        _refuse_others(asked, UNORDERED, *OF_KEYS, "reverse", "backward_iteration")
        how = {"where": asked.where, "limit": asked.limit, "columns": asked.columns}
        found = table.read(**how, after=pinned.after)
        return page(asked, pinned, table.version, found)
    if key := asked.get("key"):
        _refuse_others(asked, ONE_ROW, *OF_KEYS[1:], *ASIDE)
        row = table.get(*(parse_key(table.row_key, key) or ()))
        schema = table.schema
        kept = check_columns(asked.address, asked.columns, schema.names)
        schema = pa.schema([schema.field(name) for name in kept])
        chosen = () if row is None else ({name: row[name] for name in kept},)
        return Page(asked.address, table.version, schema, found=chosen)
    for name in ("from", "to"):
        if asked.get(name):
            _refuse_others(asked, f"{name} bounds the keys", f"key_{name}")
    low = parse_key(table.key, asked.get("from") or asked.get("key_from"))
    high = parse_key(table.key, asked.get("to") or asked.get("key_to"))
    if is_backward and table.key.are_backward(low, high):
        _check_reverse(asked)
    found = table.range(key_from=low, key_to=high, **_how(asked, pinned))
    return page(asked, pinned, table.version, found)


def _fetch(asked: Question, pinned: Pinned) -> Page:
    if asked.get("backward_iteration") is not None:
        raise refuse(
            "backward_iteration goes with order=key: for order=time, the table declares it",
            "use reverse=true, with the earlier time as `from`",
        )
    store = pinned.lake.window(asked.address)
    keys = {n: parse_key(store.key, asked.get(n)) for n in ("key", "key_from", "key_to")}
    times = {f"time_{name}": _time(asked, name) for name in ("from", "to")}
    overlapping = bool(asked.get("overlapping"))
    found = store.fetch(**keys, **times, overlapping=overlapping, **_how(asked, pinned))
    start, end = times.values()
    if store.backward_iteration and start and end and parse_time(start) > parse_time(end):
        _check_reverse(asked)
    return page(asked, pinned, store.version, found)


def _check_reverse(asked: Question) -> None:
    """Raise Refused if rows from the last bound to the first are not to be reversed."""
    if asked.get("reverse") is False:
        what = "reverse=false: from a later to an earlier bound, rows come last first"
        raise refuse(what, "give the earlier bound as `from`")


def _time(asked: Question, name: str) -> str | None:
    texts = asked.get(name, ())
    if len(texts) > 1:
        raise refuse(f"parameter {name!r} is given {len(texts)} times: it is one time")
    return texts[0] if texts else None


def _how(asked: Question, pinned: Pinned) -> dict[str, Any]:
    return {
        "reverse": bool(asked.get("reverse")),
        "limit": asked.limit,
        "where": asked.where,
        "columns": asked.columns,
        "after": pinned.after,
    }


def _refuse_others(asked: Question, why: str, *names: str) -> None:
    if given := [name for name in names if asked.get(name)]:
        raise refuse(f"{why}: leave out {', '.join(given)}")


def page(asked: Question, pinned: Pinned, version: int, found: Rows) -> Page:
    """Return a page of these rows, which ends early where it has the bytes or took the time."""
    batches, count, size, is_cut = list[pa.RecordBatch](), 0, 0, False
    found.touched.until = asked.until
    try:
        for batch in found.batches():
            batches.append(asked.hide_notes(batch))
            count, size = count + batch.num_rows, size + batch.nbytes
            if is_cut := size >= asked.bytes or asked.is_late:
                break
    except Overdue:
        if not count:
            raise took_long(asked.limits) from None
        is_cut = True
    last = found.cursor if count and (is_cut or count >= asked.limit) else None
    after = pinned.cursor(last) if last else None
    return Page(asked.address, version, found.schema, tuple(batches), after)


@at_versions
def top(asked: Question, pinned: Pinned) -> Answer:
    """Return rankings: of one partition as rank -> row, of several as a list of them."""
    ranking = pinned.lake.ranking(asked.address)
    types = ranking.table.schema
    given = {
        column: None if text is None else ranking.value(column, text)
        for column, text in asked.partition.items()
    }
    names = ranking.partition_columns
    rank = ranking.spec.rank or ranking.columns[-1]
    fields = list(types) if ranking.spec.rank else [*types, pa.field(rank, pa.int64())]
    rankings, flat = list[tuple[Any, Any]](), list[Row]()
    size = measured = 0
    for key, ranks in ranking.partitions(given):
        rankings.append((key, ranks))
        flat += ranking.flat(ranks)
        if len(flat) - measured >= AT_ONCE:
            size += pa.Table.from_pylist(flat[measured:], pa.schema(fields)).nbytes
            measured = len(flat)
        _check_size(asked, len(flat), size)
    size += pa.Table.from_pylist(flat[measured:], pa.schema(fields)).nbytes
    _check_size(asked, len(flat), size)
    if asked.format is not Format.JSON:
        shape = {
            "partition": names,
            "rank": rank,
            "is_shown": bool(ranking.spec.rank),
            "has_ties": ranking.spec.function != "row_number",
        }
        schema = pa.schema(fields, {"sluice": json.dumps(shape)})
        return Page(asked.address, ranking.version, schema, found=tuple(flat)).answer(asked.format)
    said: dict[str, Any] = {"table": asked.address, "version": ranking.version}
    headers = {VERSION: str(ranking.version)}
    if set(given) == set(names):
        ranks = dict(rankings[0][1]) if rankings else {}
        return Answer(to_json(said | {"ranks": ranks}), headers=headers)
    parts = [{"partition": dict(zip(names, key, strict=True)), "ranks": r} for key, r in rankings]
    return Answer(to_json(said | {"partitions": parts}), headers=headers)


def _check_size(asked: Question, count: int, size: int) -> None:
    """Raise Refused for rankings of more rows or bytes than a page has, or that come too late."""
    if asked.is_late:
        what = "takes too long"
    elif count > asked.limits.rows:
        what = f"has more than {asked.limits.rows} rows"
    elif size > asked.bytes:
        what = f"has more than {asked.bytes} bytes"
    else:
        return
    raise Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"every ranking of {asked.address!r} {what}",
        "ask for one partition: partition=COLUMN=VALUE; `rows` has them page by page",
    )


@at_versions
def count(asked: Question, pinned: Pinned) -> Answer:
    """Return the number of rows."""
    table = pinned.lake.table(asked.address)
    said = {"table": asked.address, "version": table.version, "count": table.count}
    return Answer(to_json(said))


@at_versions
def at(asked: Question, pinned: Pinned) -> Answer:
    """Return the version that a table has, or had at a time, with its columns and rows."""
    table = pinned.lake.table(asked.address)
    verbs = reading_verbs(asked)
    is_ranked = "ranking" in verbs
    said = {
        "table": asked.address,
        "version": table.version,
        "key": list(table.key.names),
        "by_time": list(pinned.lake.window(asked.address).key.names) if "window" in verbs else None,
        "partition": list(pinned.lake.ranking(asked.address).partition_columns)
        if is_ranked
        else None,
        "columns": {field.name: type_name(field.type) for field in table.schema},
        "rows": table.count,
        "is_stored": asked.is_internal or asked.table.is_stored,
        "page": asked.limits.rows,
    }
    return Answer(to_json(said))


def reading_verbs(asked: Question) -> Mapping[str, Any]:
    """Return the ways to read that the table's kind adds."""
    return {} if asked.is_internal else verbs_of(kind(asked.table.kind))
