"""Count what a reader of the code and the pages has to get through; `make check` prints it.

    python tools/house.py

A caller is a mention of a function's name: of a private one in its module, of others in all of
`libs`. Functions of one name count together, so those with one caller are at least so many.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBS = ROOT / "libs"
SHORT_FILE, SHORT_BODY = 60, 3
PARTICIPLES = frozenset(
    """begun came chosen done drawn given gone grown held hidden kept known laid left made met paid
    said seen sent shown sought taken thrown told written""".split()  # noqa: SIM905
)  # not `read`, `run`, `put`, `set` and `split`, which also say what to do


@dataclass
class House:
    """The counts of the package's modules."""

    lines: int = 0
    import_lines: int = 0
    files: Counter[str] = field(default_factory=Counter)
    functions: list[tuple[Path, ast.FunctionDef]] = field(default_factory=list)
    named_so: int = 0
    mentions: Counter[tuple[Path | None, str]] = field(default_factory=Counter)

    @classmethod
    def measure(cls, modules: Sequence[Path]) -> "House":
        """Read all modules."""
        house = cls()
        for module in modules:
            house.add(module, module.read_text("utf-8"))
        return house

    def add(self, module: Path, text: str) -> None:
        count, tree = text.count("\n"), ast.parse(text)
        self.lines += count
        self.files["all"] += 1
        self.files["short"] += count < SHORT_FILE
        self.files["empty"] += module.name == "__init__.py" and count <= 1
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        self.functions += [(module, function) for function in functions]
        for node in ast.walk(tree):
            match node:
                case ast.Import() | ast.ImportFrom():
                    self.import_lines += _length(node)
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    self.mentions[module, name] += 1
                    self.mentions[None, name] += 1
                case ast.FunctionDef(name=name, decorator_list=[]):
                    self.named_so += is_participle(name)

    @property
    def small_steps(self) -> int:
        """Functions of modules with one caller and a body of at most three lines."""
        return sum(
            self.mentions[module if f.name.startswith("_") else None, f.name] == 1
            and not f.decorator_list
            and _body(f) <= SHORT_BODY
            for module, f in self.functions
        )


def is_participle(name: str) -> bool:
    """True if a function's name is one word that says what was done, not what to do."""
    word = name.strip("_")
    is_regular = word.endswith("ed") and not word.endswith("eed")  # `feed` is a verb, too
    return "_" not in word and (is_regular or word in PARTICIPLES)


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _body(function: ast.FunctionDef) -> int:
    """Lines of a function below its docstring."""
    steps = function.body[1:] if ast.get_docstring(function) else function.body
    return sum(map(_length, steps))


def words(*pages: Path) -> int:
    """Return the words of these pages, examples included, without the lines of tables."""
    texts = " ".join(page.read_text("utf-8") for page in pages).split()
    return sum(any(map(str.isalnum, text)) for text in texts)


def modules_loaded(*command: str) -> int:
    """Return how many of Sluice's modules a command loads."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "sluice.cli.main", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    return sum(name.partition(".")[0] == "sluice" for name in names)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield what is counted, its count, and the goal."""
    house = House.measure(sorted(LIBS.rglob("*.py")))
    yield "lines of libs", f"{house.lines:,}", "58,000"
    yield "files", f"{house.files['all']}", "320"
    yield f"files under {SHORT_FILE} lines", f"{house.files['short']}", "40"
    yield "one-line __init__", f"{house.files['empty']}", "few"
    yield "lines that are imports", f"{house.import_lines / house.lines:.1%}", "5.5%"
    yield "functions with one caller and up to 3 lines", f"{house.small_steps}", "120"
    yield "functions named by a bare participle", f"{house.named_so}", "80"
    yield "modules loaded by `sluice get --help`", f"{modules_loaded('get', '--help')}", "30"
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    yield "words in README and docs, without decisions", f"{words(*pages):,}", "40,000"
    yield "words in the changelog", f"{words(ROOT / 'CHANGELOG.md'):,}", "1,000"


if __name__ == "__main__":
    for what, count, goal in rows():
        print(f"{what:<48}{count:>8}   goal {goal}")
