"""Who is answered: tokens, pipelines, and hosts that requests name."""

import re
from base64 import b64encode
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from tests.serve.conftest import Visitor
from tests.support.landed import Landed

from sluice.errors import UsageError
from sluice.serve.access import Access
from sluice.serve.answers import Refused

ALL, SHOPS, OTHERS = "a" * 20, "b" * 20, "c" * 20
TOKENS = (ALL, f"{SHOPS} shop", f"{OTHERS} news,payroll  # for the others")


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {ALL}", 200),
        (f"bearer {SHOPS}", 200),
        ("Basic " + b64encode(f"ann:{SHOPS}".encode()).decode(), 200),
        (f"Bearer {OTHERS}", 404),
        ("Bearer " + "d" * 20, 401),
        (f"Basic {ALL}", 401),
        ("Basic é", 401),
        ("", 401),
    ],
)
@pytest.mark.parametrize("path", ["/v1/tables/events/count", "/v1/tables/best/why?key=1&key=x"])
def test_a_token_sees_its_pipelines(
    visit: Visitor, authorization: str, status: int, path: str
) -> None:
    found = visit(*TOKENS).get(path, headers={"Authorization": authorization.encode("latin-1")})
    assert found.status_code in (status, 404 if status == 200 and "why" in path else status)
    if status == 404:
        assert "shop." not in found.text
    if status == 401:
        assert found.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.parametrize("path", ["/v1/tables", "/v1/status", "/v1/plan", "/metrics"])
def test_what_is_said_of_all_tables_is_of_visible_ones(visit: Visitor, path: str) -> None:
    client = visit(*TOKENS)
    assert "shop.events" in client.get(path, headers={"Authorization": f"Bearer {SHOPS}"}).text
    hidden = client.get(path, headers={"Authorization": f"Bearer {OTHERS}"})
    assert hidden.status_code == 200
    assert "shop." not in hidden.text


BROKEN = "pipeline: news\nviews:\n  few: {kind: topk}\n"
READS_IT = (
    "pipeline: late\nschedule: assets\nviews:\n  fewer:\n    kind: topk\n    from: news.few\n"
    '    partition_by: [user]\n    order_by: ["n desc"]\n    limit: 1\n'
)


def test_a_token_sees_the_mistakes_of_its_pipelines(copy: Landed, visit: Visitor) -> None:
    for name, text in {"news": BROKEN, "late": READS_IT, "odd": "pipelin: x\n"}.items():
        (copy.folder / "config" / "pipelines" / f"{name}.yaml").write_text(text)
    names = {"news": "b" * 20, "late": "c" * 20, "shop": "d" * 20}
    client = visit(ALL, *(f"{token} {name}" for name, token in names.items()), of=copy)

    def ask(path: str, token: str) -> Response:
        return client.get(path, headers={"Authorization": f"Bearer {token}"})

    def left_out(token: str) -> tuple[list[str], str]:
        said = ask("/v1/status", token).json()["left_out"]
        return said["pipelines"], " ".join(said["mistakes"])

    every, mistakes = left_out(ALL)
    assert every == ["late", "news", "odd"]
    assert "news.yaml:3" in mistakes
    assert "odd.yaml:1" in mistakes
    assert left_out(names["shop"]) == ([], "")
    assert left_out(names["news"])[0] == ["news"]
    assert set(re.findall(r"\w+\.yaml", left_out(names["news"])[1])) == {"news.yaml"}
    assert left_out(names["late"]) == (
        ["late"],
        "late is left out until mistakes of pipelines that it reads are mended",
    )
    for path in ("/v1/tables/few", "/", "/pipelines/news"):
        for who, token in {"all": ALL, **names}.items():
            found = ask(path, token)
            assert ("news.yaml:3" in found.text) == (who in ("all", "news")), (path, who)
            assert str(copy.folder) not in found.text
            assert found.status_code == (200 if path == "/" else 404)
    assert 'sluice_pipeline_left_out{pipeline="news"} 1' in ask("/metrics", names["news"]).text
    assert 'sluice_pipeline_left_out{pipeline="shop"} 0' in ask("/metrics", ALL).text
    assert "news" not in ask("/metrics", names["shop"]).text


READS_SHOP = """\
pipeline: news
schedule: assets
views:
  few: {kind: select, from: shop.evnts, select: {id: id}}
  old: {kind: select, from: shop.events, select: {id: ids}}
  odd: {kind: select, from: shop.events, selct: {id: id}}
"""


def test_a_limited_token_gets_the_place_of_a_mistake_alone(copy: Landed, visit: Visitor) -> None:
    """What is wrong may tell of tables of other pipelines that the file reads."""
    (copy.folder / "config" / "pipelines" / "news.yaml").write_text(READS_SHOP)
    client = visit(ALL, f"{OTHERS} news", of=copy)

    def said(token: str) -> list[str]:
        found = client.get("/v1/status", headers={"Authorization": f"Bearer {token}"}).json()
        return [one.removeprefix("pipelines/news.yaml:") for one in found["left_out"]["mistakes"]]

    every, shown = said(ALL), said(OTHERS)
    assert "did you mean 'shop.events'?" in every[0]
    assert "columns are: id, user" in every[1]
    places = ("4: views.few.from", "5: views.old.select.id", "6: views.odd.selct")
    assert [one.rpartition(": ")[0] for one in shown] == [*places]
    assert {one.rpartition(": ")[2] for one in shown} == {"`sluice validate` says what is wrong"}


@pytest.mark.parametrize("suffix", ["forgotten", "forgetting"])
def test_hashes_of_who_was_forgotten_are_not_served(visit: Visitor, suffix: str) -> None:
    for path in ("", "/rows", "/count", "/changes"):
        found = visit().get(f"/v1/tables/events__{suffix}{path}")
        assert (found.status_code, "not served" in found.text) == (404, True), path


FROM_ANOTHER = """
pipeline: news
schedule: assets
views:
  dear: {kind: select, from: shop.events, where: "id > 1000000", select: {id: id, what: what}}
"""


def test_rows_that_a_condition_keeps_out_are_hidden_with_their_pipeline(
    copy: Landed, visit: Visitor
) -> None:
    (copy.folder / "config" / "pipelines" / "news.yaml").write_text(FROM_ANOTHER)
    copy.project = copy.loaded()
    copy.advance()
    client = visit(ALL, f"{OTHERS} news", of=copy)

    def ask(token: str) -> Any:
        found = client.get(
            "/v1/tables/news.dear/why-not?key=3", headers={"Authorization": f"Bearer {token}"}
        )
        assert found.status_code == 200, found.text
        (reason,) = [r for r in found.json()["reasons"] if r["why"] == "filtered"]
        return reason

    assert [row["id"] for row in ask(ALL)["rows"]] == [3]
    hidden = ask(OTHERS)
    assert (hidden["rows"], hidden["what"]) == ([], "where: id > 1000000")


@pytest.mark.parametrize("path", ["/v1/tables", "/v1/openapi.json", "/v1/docs", "/metrics"])
def test_nothing_but_health_is_answered_without_a_token(visit: Visitor, path: str) -> None:
    client = visit(ALL)
    assert client.get(path).status_code == 401
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8090", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("[::1]", 200),
        ("LOCALHOST", 200),
        ("localhost.:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("[::1", 421),
        ("127.0.0.1.evil.example:80", 421),
    ],
)
def test_without_a_token_only_this_machine_is_named(visit: Visitor, host: str, status: int) -> None:
    found = visit().get("/v1/tables/events/count", headers={"Host": host})
    assert found.status_code == status
    assert status == 200 or "name it `localhost`" in found.json()["error"]["hint"]


def test_another_interface_needs_a_token(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        Access().check_host(host)
    for host in ("0.0.0.0", "::", "10.0.0.7", "example.org", ""):
        with pytest.raises(UsageError, match="without a token"):
            Access().check_host(host)
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n{ALL}\n")
    Access.read(str(file)).check_host("0.0.0.0")


@pytest.mark.parametrize(
    "text",
    ["short", f"{ALL} a b", "# nothing", f"{ALL} ,", f"{ALL} a\n{ALL} b"],
)
def test_a_file_of_tokens_is_checked(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(UsageError, match="token") as caught:
        Access.read(str(tmp_path / "tokens"))
    assert ALL not in str(caught.value)
    with pytest.raises(UsageError, match="can't be read"):
        Access.read(str(tmp_path / "nowhere"))


def test_tokens_are_read_as_they_are_written(tmp_path: Path) -> None:
    """A # in a token begins no comment, which would leave a shorter token without a limit."""
    (tmp_path / "tokens").write_text(f"  # ours\n{ALL}#9Q shop\n\n{OTHERS}\tnews , shop \n")
    access = Access.read(str(tmp_path / "tokens"))
    assert [token.pipelines for token in access.tokens] == [{"shop"}, {"news", "shop"}]
    assert access.named == {"news", "shop"}
    for token, is_known in ((f"{ALL}#9Q", True), (ALL, False), (OTHERS, True)):
        with nullcontext() if is_known else pytest.raises(Refused):
            access.admit({"authorization": f"Bearer {token}"})
