"""Tables that fit a terminal: the first columns that are readable, and the names of the others."""

import sys
from decimal import Decimal

import click
import pytest

from sluice.terminal.output import PAGE, Format, print_fitted, write_found

NAMES = [f"amount_{i:02}" for i in range(12)]
WIDE = [dict.fromkeys(NAMES, Decimal("123456789.25"))]
HINT = "--columns A,B chooses columns, --json shows all."


@pytest.fixture
def shown(capsys, monkeypatch):
    """Rows as a terminal of that width shows them, line by line."""

    def write(rows, columns, width, lead=(), chosen=None, format_=Format.TABLE):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        write_found(rows, columns, format_, lead, chosen)
        return click.unstyle(capsys.readouterr().out).splitlines()

    return write


def header(lines):
    return lines[1].replace("┃", " ").split()


def test_the_first_columns_that_fit_are_shown_and_the_others_named(shown):
    lines = shown(WIDE, NAMES, 80)
    assert header(lines) == NAMES[:5]
    assert lines[3].count("│ 123456789.25 ") == 5
    assert " ".join(lines[5:]) == f"7 columns hidden: {', '.join(NAMES[5:])} {HINT}"
    assert max(map(len, lines)) <= 80


def test_a_report_hides_columns_like_rows_do_and_breaks_only_texts(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    why = "16 delivered, the last one of 2024-01-16; due: [2024-01-17, 2024-01-19) (2 intervals)"
    rows = [("shop.transactions", "ingest", why, 12, 10**20), ("shop.a", "wait", "", None, None)]
    print_fitted(("table", "next", "because", "rows", "bytes"), rows)
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert header(lines) == ["table", "next", "because", "rows"]
    assert "│ shop.transactions │ ingest │" in lines[3]
    assert lines[-2:] == ["1 column hidden: bytes", "--json shows all."]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("room", "fits"), [(31, ["a", "b"]), (30, ["a"])])
def test_a_column_is_hidden_only_if_it_has_no_room(shown, room, fits):
    lines = shown([{"a": 10**11, "b": 10**11}], ["a", "b"], room)
    assert header(lines) == fits


def test_columns_that_lead_come_first_and_chosen_ones_as_they_are(shown):
    lines = shown(WIDE, NAMES, 80, lead=["amount_11", "amount_05", "nowhere"])
    assert header(lines) == ["amount_11", "amount_05", "amount_00", "amount_01", "amount_02"]
    chosen = shown(WIDE, NAMES, 80, lead=["amount_11"], chosen=["amount_07", "amount_03"])
    assert header(chosen) == ["amount_07", "amount_03"]
    assert len(chosen) == 5


def test_chosen_columns_that_do_not_fit_are_named_too(shown):
    lines = shown(WIDE, NAMES, 40, chosen=NAMES[6:10])
    assert header(lines) == NAMES[6:8]
    assert lines[5] == "2 columns hidden: amount_08, amount_09"


def test_a_long_text_is_broken_and_a_number_beside_it_is_not(shown):
    row = {"id": 1, "said": "many words " * 40, "tail": 12345678901234}
    lines = shown([row], list(row), 70)
    assert header(lines) == ["id", "said", "tail"]
    assert lines[3].endswith("│ 12345678901234 │")
    assert {len(line) for line in lines} == {70}
    narrow = shown([row], list(row), 65)
    assert header(narrow) == ["id", "said"]
    assert len(narrow[0]) == 65


def test_a_key_of_one_word_is_not_broken(shown):
    uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    row = {"id": uuid, "what": "some words that can be broken at blanks, if they must be"}
    lines = shown([row], list(row), 70)
    assert uuid in lines[3]
    assert header(lines) == ["id", "what"]


def test_room_that_is_left_goes_to_texts(shown):
    row = {"a": "x" * 70, "b": "y" * 70, "n": 1}
    lines = shown([row], list(row), 200)
    assert "x" * 70 in lines[3]
    assert "y" * 70 in lines[3]


def test_a_number_broader_than_the_terminal_is_still_whole(shown):
    lines = shown([{"n": 10**50, "m": 1}], ["n", "m"], 30)
    assert f"│ {10**50} │" in lines
    assert lines[5] == "1 column hidden: m"


def test_what_a_page_has_no_room_for_stays_hidden_and_is_named_once(shown):
    small, large = {"a": 1, "b": 1, "c": 1}, {"a": 10**15, "b": 10**15, "c": 1}
    lines = shown([small] * PAGE + [large] * PAGE + [small], ["a", "b", "c"], 40)
    heads = [line.replace("┃", " ").split() for line in lines if line.startswith("┃")]
    assert heads == [["a", "b", "c"], ["a", "b"], ["a", "b"]]
    assert [line for line in lines if "hidden" in line] == ["1 column hidden: c"]


def test_no_rows_still_show_their_columns(shown):
    assert header(shown([], NAMES, 80)) == NAMES[:6]


def test_a_pipe_hides_nothing(capsys):
    write_found(WIDE, NAMES, Format.TABLE, ["amount_11"], None)
    lines = capsys.readouterr().out.splitlines()
    assert header(lines) == ["amount_11", *NAMES[:11]]
    assert "hidden" not in lines[-1]
