"""Values of requests as the readers take them, and what a refusal shows of a request."""

import pyarrow as pa
import pytest

from sluice.errors import ConfigError, UsageError
from sluice.read.conditions.key_order import KeyColumns
from sluice.serve.answers import Refused, to_json
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
    shown = refused.as_json("/v1/tables/t/rows key=/a/b")
    assert shown["message"] == "'/a/b' is not a value; <path> of <path> is"
    assert shown["hint"] == "see <path>"
