"""Faults inserted into a copy: what they change, and that the copy is whole again after each."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fault_map import Reach, insert_reports, report_reached
from fault_sites import Fault, faults_of
from faults import ROOT, First, Tree, draw

MODULE = '''"""A module."""


def least(rows, most=3, *, up=True):
    """Return the first rows."""
    if not rows:
        return []
    ranked = sorted(rows)
    ranked.reverse()
    shown = f"{len(rows) - 1} rows"
    if len(ranked) < most and up:
        raise ValueError("a text" + str(most - 1))
    return cut(ranked, most)[: most - 1]
'''
FAULTS = {
    "bound": "def least(rows, most=(3 + 1), *, up=True):",
    "default": "def least(rows, most=3, *, up=False):",
    "not": "    if (rows):",
    "missing line": "    pass",
    "order": "    ranked = sorted(rows)[::-1]",
    "comparison": "    if ((len(ranked)) <= (most)) and up:",
    "logic": "    if ((len(ranked) < most) or (up)):",
    "arguments": "    return cut(most, ranked)[: most - 1]",
    "sign": "    return cut(ranked, most)[: ((most) + (1))]",
}


def change(fault: Fault) -> str:
    """The line that a fault writes."""
    return fault.insert(MODULE).splitlines()[fault.line - 1]


def test_each_kind_of_fault_changes_one_place_and_leaves_python() -> None:
    found = faults_of("kinds/least.py", MODULE)
    assert {kind: next(change(f) for f in found if f.kind == kind) for kind in FAULTS} == FAULTS
    for fault in found:
        compile(fault.insert(MODULE), fault.file, "exec")


def test_texts_messages_annotations_and_times_have_no_fault() -> None:
    idle = '''class A:
    """Not 3."""
    def __repr__(self):
        return str(self.n + 1)
    def f(self, n: Literal[1, True]) -> Literal[2]:
        assert n > 1
        raise ValueError(f"{n + 1}", not n)
        log.info("read", n - 1)
        passing("recorded", n - 1)
        return TypeVar("T", covariant=True), time.monotonic() - n < m
'''
    assert faults_of("kinds/a.py", idle) == []


def test_a_fault_is_reached_by_its_statement_a_default_by_its_function_others_by_any() -> None:
    faults = {f.kind: f for f in faults_of("kinds/least.py", MODULE + "MOST = 4\n")}
    text = insert_reports(MODULE, [faults["not"], faults["default"], faults["bound"]])
    calls = [line.split("(*")[1] for line in text.splitlines() if "report_reached" in line]
    keys = [faults[kind].key for kind in ("default", "bound", "not")]
    assert calls == [f"{keys[:2]})", f"{keys[2:]})"]
    assert ast.get_docstring(ast.parse(text).body[1]) == "Return the first rows."


def test_a_seed_draws_the_same_faults_wherever_their_lines_move_to() -> None:
    moved = faults_of("kinds/least.py", MODULE.replace("def", "AT_MOST = []\n\n\ndef"))
    drawn = draw(faults_of("kinds/least.py", MODULE), 7, 9)
    assert [f.key for f in draw(moved, 7, 9)] == [f.key for f in drawn]


def test_a_seed_draws_each_kind_equally_often_and_more_of_it_begin_alike() -> None:
    faults = faults_of("kinds/least.py", MODULE)
    assert sorted(fault.kind for fault in draw(faults, 7, 9)) == sorted(FAULTS)
    assert draw(faults, 7, 9)[:5] == draw(faults, 7, 5)
    assert len({tuple(draw(faults, seed, 9)) for seed in range(9)}) > 1


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test, with the programs."""
    texts = {
        "libs/sluice/__init__.py": "",
        "libs/sluice/kinds/__init__.py": "",
        "libs/sluice/kinds/least.py": "def least(rows):\n    rows.sort()\n    return rows[0]\n",
        "tests/support/forked.py": "def call(target, *arguments): ...\n",
        "tests/conftest.py": "def pytest_addoption(parser): parser.addoption('--tier')\n",
        "tests/kinds/test_least.py": "from sluice.kinds.least import least\n\n"
        "def test_the_least_comes_first():\n    assert least([2, 1]) == 1\n",
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
        ".gitignore": ".cache\n.venv\n",
    }
    for name, text in texts.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    for program in ("faults.py", "fault_map.py", "fault_sites.py"):
        file = tmp_path / "tools" / program
        file.parent.mkdir(exist_ok=True)
        file.write_bytes((ROOT / "tools" / program).read_bytes())
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


@pytest.mark.parametrize("ending", [None, KeyboardInterrupt, signal.SIGTERM])
def test_the_copy_is_whole_again_after_a_fault_and_after_a_stop(
    project: Path, ending: type[BaseException] | signal.Signals | None
) -> None:
    tree = Tree(project / ".cache" / "tree", project)
    tree.refresh()
    module = tree.libs / "sluice/kinds/least.py"
    before, stat = module.read_text("utf-8"), module.stat()
    fault = next(f for f in faults_of("kinds/least.py", before) if f.kind == "missing line")
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tree.changed(fault.file, fault.insert):
            assert module.read_text("utf-8") == "def least(rows):\n    pass\n    return rows[0]\n"
            assert module.stat().st_mtime_ns != stat.st_mtime_ns
            if isinstance(ending, signal.Signals):
                os.kill(os.getpid(), ending)
            elif ending:
                raise ending
    except KeyboardInterrupt:
        assert ending is not None
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert (module.read_text("utf-8"), module.stat().st_mtime_ns) == (before, stat.st_mtime_ns)
    assert (project / "libs/sluice/kinds/least.py").read_text("utf-8") == before


def test_a_map_of_more_tests_is_added_to_the_one_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = next(f for f in faults_of("kinds/least.py", MODULE) if f.kind == "not")
    monkeypatch.setenv("FAULT_MAP", str(tmp_path))
    reached = list[str]()
    for test in ("tests/read/test_a.py::test_b", "tests/kinds/test_least.py::test_c"):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{test} (call)")
        report_reached(fault.key)
        with (tmp_path / "seconds.tsv").open("a") as file:
            file.write(f"{test}\t1.0\n")
        reached.insert(0, test)  # those beside the module come first
        assert Reach(tmp_path).tests_of(fault) == reached


def test_tests_are_chosen_by_name_file_or_folder_in_the_order_given(tmp_path: Path) -> None:
    every = [
        f"tests/{name}" for name in ("a/test_x.py::one", "a/test_x.py::two[b/c]", "b/test_y.py::q")
    ]

    def chosen(*names: str) -> list[str]:
        items = [SimpleNamespace(nodeid=name) for name in every]
        First(names, tmp_path / "failed").pytest_collection_modifyitems(items)
        return [item.nodeid for item in items]

    assert chosen("tests/b/test_y.py::q", "tests/a/test_x.py::one") == [every[2], every[0]]
    assert chosen("tests/a/test_x.py") == every[:2]
    assert chosen("tests/b", "tests/a") == [every[2], *every[:2]]
    assert chosen("tests/a/test_x.py::two[b/c]") == every[1:2]
    assert chosen("tests/c") == []


@pytest.mark.usefixtures("long")
def test_the_tests_that_reach_a_fault_find_it(project: Path) -> None:
    def faults(*words: str) -> str:
        command = [sys.executable, "tools/faults.py", *words]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    faults("map", "--count", "2")
    said = faults("run", "--count", "2")
    assert "found       bound        kinds/least.py:3: '0' -> '(0 + 1)'" in said
    assert "tests/kinds/test_least.py::test_the_least_comes_first" in said
    assert "2 faults: `make test` finds 2, any test 2" in said
