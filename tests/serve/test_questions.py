"""Values of requests as the readers take them; what a refusal shows, and how a page is written."""

import csv
import json
from functools import partial
from io import StringIO

import pyarrow as pa
import pytest

from sluice.errors import ConfigError, UsageError
from sluice.read.key_order import KeyColumns
from sluice.serve.answers import (
    Answer,
    Format,
    Page,
    Refused,
    in_requests,
    to_json,
    without_paths,
)
from sluice.serve.questions import parse_key, to_text

KEY = KeyColumns("t", ("name", "code"), (pa.string(), pa.binary()))


@pytest.mark.parametrize("value", [b"", b"\x00\xff", b"abcd", bytes(range(256))])
def test_bytes_of_an_answer_are_a_value_of_a_question(value: bytes) -> None:
    answered = to_json({"code": value}).decode().split('"')[3]
    assert to_text(value) == answered
    assert parse_key(KEY, ["abcd", answered]) == ("abcd", value)
    assert parse_key(KEY, [r"\N", r"\N"]) == (None, None)


@pytest.mark.parametrize("text", ["abc", "00ff0", "!", "é"])
def test_a_text_that_is_no_base64_is_no_value_of_bytes(text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is not a value of column 'code'") as found:
        parse_key(KEY, ["a", text])
    assert "base64" in found.value.hint


def test_too_many_values_of_a_key_are_refused() -> None:
    with pytest.raises(UsageError, match="3 values don't fit"):
        parse_key(KEY, ["a", "AA==", "b"])


def test_a_refusal_shows_paths_of_the_request_alone() -> None:
    refused = Refused(400, "'/a/b' is not a value; s3://lake/t of /home/x is", "see /srv/lake")
    wrong = ConfigError(["/srv/a/shop.yaml:3: wrong"])
    assert Refused.of(404, wrong).message == "shop.yaml:3: wrong"
    shown = refused.as_json(partial(without_paths, given="/v1/tables/t/rows key=/a/b"))
    assert shown["message"] == "'/a/b' is not a value; <path> of <path> is"
    assert shown["hint"] == "see <path>"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("run `sluice ingest o --start T --end T`", "run `sluice ingest o --start T --end T`"),
        ("`sluice get shop.o 7` finds it", "`/v1/tables/shop.o/rows?key=7` finds it"),
        ("ask for --from-version 5", "ask for from_version=5"),
        (
            "leave out `--as map`; `sluice run o --end T`",
            "leave out `as map`; `sluice run o --end T`",
        ),
    ],
)
def test_a_hint_has_requests_for_reads_and_commands_for_the_rest(said: str, shown: str) -> None:
    assert in_requests(said) == shown


@pytest.mark.parametrize("count", [0, 1, 1_000, 2_500])
def test_a_page_of_many_rows_is_written_some_rows_at_a_time(count: int) -> None:
    rows = [{"n": n, "t": ["é", '"', "", None][n % 4]} for n in range(count)]
    schema = pa.schema({"n": pa.int64(), "t": pa.string()})
    page = Page("t", 3, schema, tuple(pa.Table.from_pylist(rows, schema).to_batches()), "c")

    def text(answer: Answer) -> str:
        parts = [answer.body] if isinstance(answer.body, bytes) else [*map(bytes, answer.body)]
        assert isinstance(answer.body, bytes) == (count <= 1_000)
        assert max(part.count(b"\n") for part in parts) <= 1_001
        assert max(part.count(b'"n"') for part in parts) <= 1_000
        return b"".join(parts).decode()

    said = json.loads(text(page.answer(Format.JSON)))
    assert said == {"table": "t", "version": 3, "rows": rows, "cursor": "c"}
    lines = text(page.answer(Format.NDJSON)).splitlines()
    assert [json.loads(line) for line in lines] == rows
    found = list(csv.DictReader(StringIO(text(page.answer(Format.CSV)))))
    assert found == [{"n": str(row["n"]), "t": row["t"] or ""} for row in rows]
