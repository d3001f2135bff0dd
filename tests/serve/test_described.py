"""The description as OpenAPI: every answer has the shape that it says, and no other fields."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor
from tests.support.landed import Landed

ASKED = {
    "/v1/tables": [""],
    "/v1/tables/{table}": ["events", "products", "catalogue", "best", "visits"],
    "/v1/tables/{table}/rows": ["events", "visits?limit=2", "best?key=1&key=a b", "catalogue"],
    "/v1/tables/{table}/top": ["best", "best?partition=user=1", "tied", "tied?partition=user=1"],
    "/v1/tables/{table}/count": ["events", "catalogue"],
    "/v1/tables/{table}/at": ["events", "visits", "best", "catalogue"],
    "/v1/tables/{table}/changes": ["sums", "sums?limit=1"],
    "/v1/tables/{table}/why": [
        "sums?key=1&key=a b",
        "best?partition=user=1&rank=1",
        "events?key=1",
    ],
    "/v1/tables/{table}/why-not": ["sums?key=9&key=x", "best?partition=user=1&rank=9"],
    "/v1/plan": ["", "?table=best"],
    "/v1/status": [""],
    "/healthz": [""],
}


@pytest.fixture
def spec(visit: Visitor) -> dict[str, Any]:
    """The description, in which objects have no fields but those named."""
    found: dict[str, Any] = visit().get("/v1/openapi.json").json()
    for one in found["components"]["schemas"].values():
        if "properties" in one:
            one["additionalProperties"] = False
    return found


def check(spec: dict[str, Any], path: str, status: str, answer: Any) -> None:
    said = spec["paths"][path]["get"]["responses"][status]["content"]["application/json"]["schema"]
    whole = {**said, "components": spec["components"]}
    Draft202012Validator(whole, format_checker=FormatChecker()).validate(answer)


def ask(client: TestClient, path: str, asked: str) -> Any:
    table, _, query = asked.partition("?")
    found = client.get(path.format(table=table) + (f"?{query}" if query else ""))
    assert found.status_code == 200, (path, asked, found.text)
    return found.json()


def test_every_operation_answers_as_described(visit: Visitor, spec: dict[str, Any]) -> None:
    answered = {p for p, of in spec["paths"].items() if "application/json" in str(of["get"])}
    assert answered - {"/metrics"} == {*ASKED}
    for path, many in ASKED.items():
        for asked in many:
            check(spec, path, "200", ask(visit(), path, asked))


def test_a_limited_token_is_answered_as_described(visit: Visitor, spec: dict[str, Any]) -> None:
    client = visit(f"{'t' * 16} news")
    client.headers = {"Authorization": f"Bearer {'t' * 16}"}
    for path in ("/v1/tables", "/v1/status", "/v1/plan"):
        check(spec, path, "200", ask(client, path, ""))
    refused = client.get("/v1/tables/events/rows")
    assert refused.status_code == 404
    check(spec, "/v1/tables/{table}/rows", "4XX", refused.json())


def test_declarations_that_are_not_read_are_answered_as_described(
    visit: Visitor, spec: dict[str, Any], copy: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.serve.app.LOOK", 0)
    client = visit(of=copy)
    (copy.folder / "config" / "pipelines" / "shop.yaml").write_text("views: [}\n")
    health = client.get("/healthz")
    assert health.status_code == 503
    check(spec, "/healthz", "503", health.json())
    check(spec, "/v1/status", "200", ask(client, "/v1/status", ""))


def test_a_shape_that_is_not_described_is_found(spec: dict[str, Any]) -> None:
    for wrong in ({"table": "a", "version": 1}, {"table": "a", "version": 1, "count": "2"}):
        with pytest.raises(ValidationError):
            check(spec, "/v1/tables/{table}/count", "200", wrong)
