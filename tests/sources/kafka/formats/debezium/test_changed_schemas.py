"""The schema of a captured table changes while its changes are on their way."""

import io
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from tests.sources.kafka.conftest import Topical
from tests.support.registry import registry

Made = Callable[..., Topical]
Row = dict[str, Any]
Fields = Mapping[str, str]  # of a captured table: the types of Avro, or of Connect

# id is never changed; `v` is added, then widened, `old` is dropped, and at last `v` is a text
VERSIONS: tuple[Fields, ...] = (
    {"id": "int", "old": "string"},
    {"id": "int", "old": "string", "v": "int"},
    {"id": "long", "v": "long"},
    {"id": "long", "v": "string"},
)
CONNECT = {"int": "int32", "long": "int64", "string": "string"}
FORMS = ("json", "json with schemas", "avro")
SCHEMA = "id BIGINT, old STRING, v INT"


def row(fields: Fields, key: int, value: int) -> Row:
    found = {"id": key, "old": f"o{value}", "v": f"v{value}" if value % 2 else str(value)}
    if fields.get("v") != "string":
        found["v"] = value
    return {name: found[name] for name in fields}


def sent(form: str, version: int, after: Row) -> bytes:
    change = {"before": None, "after": after, "op": "c"}
    if form == "avro":
        out = io.BytesIO()
        schemaless_writer(out, parse_schema(envelope(VERSIONS[version])), change)
        return b"\0" + (version + 1).to_bytes(4, "big") + out.getvalue()
    if form == "json":
        return json.dumps(change).encode()
    fields = [{"field": n, "type": CONNECT[t]} for n, t in VERSIONS[version].items()]
    schema = {"type": "struct", "fields": [{"field": "after", "fields": fields}]}
    return json.dumps({"schema": schema, "payload": change}).encode()


def envelope(fields: Fields) -> Row:
    image = {"type": "record", "name": "Row", "fields": []}
    image["fields"] = [{"name": n, "type": ["null", t]} for n, t in fields.items()]
    parts = (("before", ["null", image]), ("after", ["null", "Row"]), ("op", "string"))
    return {"type": "record", "name": "E", "fields": [{"name": n, "type": t} for n, t in parts]}


ANSWERS = {
    f"/schemas/ids/{n}": {"schema": json.dumps(envelope(fields))}
    for n, fields in enumerate(VERSIONS, 1)
}


@pytest.fixture
def _registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    with registry(ANSWERS) as address:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_REGISTRY", address)
        yield


@pytest.mark.usefixtures("_registry")
@pytest.mark.parametrize("form", FORMS)
def test_columns_come_go_widen_or_fit_no_longer(topical: Made, form: str) -> None:
    format_ = "debezium-avro, registry: shop_registry" if form == "avro" else "debezium-json"
    lake = topical(SCHEMA, format_=format_, extra="key: [id]", bounds=", max_rows: 23")
    chance, table, refused, messages = random.Random(5), dict[int, Row](), list[int](), []
    for offset in range(80):
        version, key = offset // 20, chance.randrange(12)
        after = row(VERSIONS[version], key, offset)
        messages.append(({"id": key}, sent(form, version, after)))
        if version == 3 and offset % 2:  # v is a text that is no number
            refused.append(offset)
        else:
            v = after.get("v")
            table[key] = {"id": key, "old": after.get("old"), "v": None if v is None else int(v)}
    lake.send(*messages)
    reports = lake.take()
    assert lake.values() == sorted(table.values(), key=repr)
    assert sum(r.quarantined or 0 for r in reports) == len(refused) == len(lake.quarantine())
    assert {json.loads(q["raw"])["offset"] for q in lake.quarantine()} == set(refused)
    assert all(q["reason"].startswith("column v: ") for q in lake.quarantine())
