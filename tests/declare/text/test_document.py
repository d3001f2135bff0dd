"""YAML by 1.2 rules, with lines and environment variables."""

from pathlib import Path

import pytest

from sluice.declare.document import BrokenDocument, Document, read_document


def document(tmp_path: Path, text: str, **environ: str) -> Document:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_document(path, "x.yaml", environ)


def test_on_yes_and_no_are_words(tmp_path: Path) -> None:
    data = document(tmp_path, "on: yes\nno: off\ntrue: 1\nreal: true\n").data
    assert data == {"on": "yes", "no": "off", "True": 1, "real": True}


def test_numbers_with_leading_zeros_and_dates_are_as_in_1_2(tmp_path: Path) -> None:
    data = document(tmp_path, "a: 010\nb: 2017-01-01\nc: 12:30:45\nd: 1_000\n").data
    assert data["a"] == 10
    assert data["b"] == "2017-01-01"
    assert data["c"] == "12:30:45"


def test_a_date_that_no_calendar_has_is_text_for_its_key_to_refuse(tmp_path: Path) -> None:
    data = document(tmp_path, "a: 2017-13-45\nb: 2017-01-01T25:00:00\n").data
    assert data == {"a": "2017-13-45", "b": "2017-01-01T25:00:00"}


def test_every_place_has_its_line(tmp_path: Path) -> None:
    found = document(tmp_path, "a:\n  b: [1,\n      2]\n  c:\n    - d: 1\n")
    assert found.line(("a",)) == 1
    assert found.line(("a", "b")) == 2
    assert found.line(("a", "b", 1)) == 3
    assert found.line(("a", "c", 0, "d")) == 5
    assert found.line(("a", "c", 0, "missing", "deeper")) == 5


def test_parentheses_in_quotes_and_outside_of_braces_need_no_partner(tmp_path: Path) -> None:
    text = "a: {b: 'f(x', c: , d: 'g)'}\ne: f(x, y)\nf: [(a), 'b(', c]\ng: {h: i(j), k: }\n"
    assert document(tmp_path, text).data["a"] == {"b": "f(x", "c": None, "d": "g)"}


@pytest.mark.parametrize("mark", [">-", "|"])
def test_a_mistake_in_a_text_of_several_lines_is_at_the_line_that_it_quotes(
    tmp_path: Path, mark: str
) -> None:
    text = f"a:\n  schema: {mark}\n    id INT,\n\n    name STRNG,\n    b INT\n  c: 1\n"
    found = document(tmp_path, text)
    assert found.line_of(("a", "schema"), "unknown type 'STRNG'; types are: INT") == 5
    assert found.line_of(("a", "schema"), "unknown type 'NT'") == 3
    assert found.line_of(("a", "c"), "'STRNG'") == 7


def test_variables_are_read_from_the_environment(tmp_path: Path) -> None:
    text = "a: ${A:-x}/y\nb: ${B}\nc: '${A:-}'\nd: ${E:-n}\n"
    found = document(tmp_path, text, B="set", E="")
    assert found.data == {"a": "x/y", "b": "set", "c": "", "d": "n"}
    assert found.mistakes == []


def test_a_variable_can_not_smuggle_yaml_in(tmp_path: Path) -> None:
    found = document(tmp_path, "a: ${A}\n", A="x\nb: {evil: true}")
    assert found.data == {"a": "x\nb: {evil: true}"}


def test_an_undefined_variable_is_a_mistake_at_its_place(tmp_path: Path) -> None:
    found = document(tmp_path, "a: 1\nb: ${LANDNG}\n", LANDING="x")
    assert found.mistakes == [
        (
            ("b",),
            (
                "unknown environment variable 'LANDNG' without a default; did you mean 'LANDING'? "
                "or write ${LANDNG:-default}"
            ),
        )
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "can't read this as YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n\tb: 2\n", 2, "can't read this as YAML: found character '\\t' that cannot start"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice in one mapping"),
        (
            "a:\n  b: {x: coalesce(c, d), y: 1}\n",
            2,
            "'coalesce(c, d)' has no quotes; inside {...} and [...] a comma ends a value: quote",
        ),
        ("a: [x, if(a, b, f(c)), d]\n", 1, "'if(a, b, f(c))' has no quotes; inside {...}"),
        ("a: {x: id INT, d DATE, n INT, y: 1}\n", 1, "'id INT, d DATE, n INT' has no quotes; ins"),
        ("a: {x: f(a, b), y: g(a, b)}\n", 1, "'b)' is given twice in one mapping; inside {...}"),
        (
            "a: {path: l/{interval_start:%Y}/, b: 1}\n",
            1,
            "but got '{'; in a value without quotes, { begins a mapping: quote one that has braces",
        ),
        ("a: {x: f(a, 'b')}\n", 1, "can't read this as YAML: expected ',' or '}', but got"),
        ("- a\n- b\n", 1, "a mapping of keys to values is expected"),
        ("a: 1\n---\nb: 2\n", 2, "can't read this as YAML: but found another document"),
        ("? {a: [1]}\n: 2\n", 1, "can't read this as YAML"),
        ("a: *nowhere\n", 1, "can't read this as YAML: found undefined alias 'nowhere'"),
    ],
)
def test_what_is_broken_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    with pytest.raises(BrokenDocument) as broken:
        document(tmp_path, text)
    ((found, says),) = broken.value.problems
    assert found == line
    assert problem in says


def test_every_value_that_commas_have_cut_is_reported(tmp_path: Path) -> None:
    text = "a:\n  b: {x: coalesce(c, d)}\n  c: 1\n  d: [if(a, b, c)]\n"
    with pytest.raises(BrokenDocument) as broken:
        document(tmp_path, text)
    assert [(line, says.partition(" has")[0]) for line, says in broken.value.problems] == [
        (2, "'coalesce(c, d)'"),
        (4, "'if(a, b, c)'"),
    ]


def test_a_tag_makes_nothing_but_a_mistake(tmp_path: Path) -> None:
    found = document(tmp_path, "a: !!python/object:os.system x\nb: !!binary aGk=\n")
    assert found.data == {"a": None, "b": None}
    assert [where for where, _ in found.mistakes] == [("a",), ("b",)]


def test_an_alias_of_itself_ends(tmp_path: Path) -> None:
    assert document(tmp_path, "a: &x [1, *x]\n").data == {"a": [1, None]}


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(BrokenDocument, match="repeats the document too often"):
        document(tmp_path, "\n".join(lines))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: \xff\xfe")
    with pytest.raises(BrokenDocument, match="can't read this as YAML"):
        read_document(path, "x.yaml", {})
