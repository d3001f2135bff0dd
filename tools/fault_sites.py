"""Faults that a module of Sluice can have: one expression or one line of it, changed.

What decides no row and no commit has none: docstrings, annotations, assertions, texts of errors and
f-strings, `__repr__`, sizes of caches, pages, a batch's report, measured times, type variables, and
the places at which tests kill a process. Nor has what Python refuses at once, such as swapped
arguments of `isinstance`, or what is the same in any order, such as the smaller of two values. A
line has at most one fault of each kind.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

DECIDING = (
    "kinds", "changes", "engine", "delta", "read", "gate", "files", "sources", "dimensions",
    "dimension_views", "interpreter",
)  # fmt: skip
SHOWING = {
    "page", "commands", "data_docs", "review", "cost", "samples", "status", "batch_report",
}  # fmt: skip

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.BitOr: "&", ast.BitAnd: "|",
}  # fmt: skip
OPPOSITES = {
    "asc": "desc", "first": "last", "left": "inner", "insert": "delete", "min": "max", "any": "all",
    "union": "intersection", "bisect_left": "bisect_right",
}  # fmt: skip
OPPOSITES |= {other: word for word, other in OPPOSITES.items()}
SWAPPED_IN_VAIN = {
    "isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast", "partial", "field", "map",
    "filter", "sorted", "reduce", "replace", "sum", "min", "max", "minimum", "maximum", "least",
    "greatest",
}  # fmt: skip
IDLE_SETTINGS = {"hint", "maxsize", "strict", "frozen", "slots", "repr", "stacklevel"}
IDLE_CALLS = {"warn", "debug", "info", "warning", "error", "exception", "__init__", "passing"}
CLOCKS = {"monotonic", "perf_counter"}
TEXTS = ast.JoinedStr | ast.Constant | ast.List | ast.Tuple
LARGEST_BOUND = 100  # at larger numbers, work is done another way with the same result


@dataclass(frozen=True)
class Fault:
    """One change of a module: what stands from `start` to `end` of its text becomes `text`."""

    file: str  # in libs/sluice
    line: int
    kind: str
    start: int
    end: int
    was: str
    text: str
    reach: int | None  # line of the statement or function whose tests can find it
    key: str  # the same wherever its line moves to

    def insert(self, source: str) -> str:
        """Return the module's text with this fault."""
        return source[: self.start] + self.text + source[self.end :]


def faults_of_packages(libs: Path) -> list[Fault]:
    """Return every fault of the modules that decide rows and commits."""
    root = libs / "sluice"
    modules = (module for name in DECIDING for module in sorted((root / name).rglob("*.py")))
    return [
        fault
        for module in modules
        if module.stem not in SHOWING
        for fault in faults_of(str(module.relative_to(root)), module.read_text("utf-8"))
    ]


def faults_of(file: str, source: str) -> list[Fault]:
    """Return the faults of one module, at most one of a line and kind."""
    sites = _Sites(file, source)
    sites.visit(ast.parse(source))
    return list(sites.found.values())


class _Sites(ast.NodeVisitor):
    """A walk through a module that collects its faults."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        self.found: dict[tuple[int, str], Fault] = {}
        self._lines = [0]
        for line in source.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._encoded = source.encode()
        self._reach: int | None = None
        self._alike = Counter[str]()

    def _offset(self, line: int, column: int) -> int:
        return len(self._encoded[: self._lines[line - 1] + column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = self._offset(node.end_lineno, node.end_col_offset)
        return self._offset(node.lineno, node.col_offset), end

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return f"({self.source[start:end]})" if start != end else ""

    def _add(self, kind: str, node: ast.expr | ast.stmt, text: str) -> None:
        self._put(kind, node, *self._span(node), text)

    def _put(self, kind: str, node: ast.expr | ast.stmt, start: int, end: int, text: str) -> None:
        if (node.lineno, kind) not in self.found:
            was = self.source[start:end]
            name = "\0".join((self.file, kind, was, text))
            self._alike[name] += 1
            key = sha256(f"{name}\0{self._alike[name]}".encode()).hexdigest()[:12]
            fault = Fault(self.file, node.lineno, kind, start, end, was, text, self._reach, key)
            self.found[node.lineno, kind] = fault

    # Statements: those of a function are reached by its tests, all others whenever it is imported.

    def visit(self, node: ast.AST) -> None:
        """Visit a node; a statement in a function sets the line whose tests reach it."""
        before = self._reach
        if isinstance(node, ast.stmt) and before is not None:
            self._reach = node.lineno
        super().visit(node)
        self._reach = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in {"__repr__", "__str__"}:
            return
        before, body = self._reach, node.body
        self._reach = body[0].lineno
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in body:
            self.visit(statement)
        self._reach = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._reach = self._reach, None
        for statement in node.body:
            self.visit(statement)
        self._reach = before

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Add nothing: an assertion narrows a type."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Add nothing: a message decides nothing."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Add nothing: a text."""

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        leaving = ast.Return | ast.Raise | ast.Continue | ast.Break
        if not node.orelse and len(node.body) == 1 and isinstance(node.body[0], leaving):
            start, end = self._span(node)
            if self.source[self.source.rfind("\n", 0, start) + 1 : start].isspace():  # no elif
                self._put("missing line", node, start, end, "pass")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        for part in (node.guard, *node.body):
            if part is not None:
                self.visit(part)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call) and _name(node.value.func) in IDLE_CALLS:
            return
        self._add("missing line", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("missing line", node, "pass")
        self.generic_visit(node)

    # Expressions.

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and not _measures_time(node):
            left, right = self._text(node.left), self._text(node.comparators[0])
            other = COMPARISONS[type(node.ops[0])]
            self._add("comparison", node, f"({left} {other} {right})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = SIGNS.get(type(node.op))
        is_type = isinstance(node.op, ast.BitOr) and self._reach is None
        is_text = any(isinstance(x, TEXTS) for x in _sides(node))
        if other and not (is_type or is_text or _measures_time(node)):
            text = f"({self._text(node.left)} {other} {self._text(node.right)})"
            self._add("sign", node, text)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " or " if isinstance(node.op, ast.And) else " and "
        self._add("logic", node, f"({word.join(self._text(value) for value in node.values)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            kind = "not" if isinstance(node.op, ast.Not) else "sign"
            self._add(kind, node, self._text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("default", node, str(not value))
        elif isinstance(value, int) and value <= LARGEST_BOUND:
            self._add("bound", node, f"({value} + 1)")
        elif isinstance(value, str) and value in OPPOSITES:
            self._add("order", node, repr(OPPOSITES[value]))

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        start, end = self._span(node)
        if name in {"isinstance", "TypeVar"}:
            return
        if name == "sorted":
            self._put("order", node, start, end, f"{self.source[start:end]}[::-1]")
        elif name in OPPOSITES:
            word = self._span(node.func)[1]
            self._put("order", node, word - len(name), word, OPPOSITES[name])
        if name == "get" and len(node.args) == 2:
            self._put("default", node, *self._between(node.args[0], node.args[1]), "")
        elif name not in SWAPPED_IN_VAIN:
            self._swap(node)
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in IDLE_SETTINGS:
                self.visit(keyword.value)

    def _swap(self, node: ast.Call) -> None:
        if len(node.args) < 2 or any(isinstance(x, ast.Starred) for x in node.args[:2]):
            return
        first, second = (self.source[slice(*self._span(x))] for x in node.args[:2])
        if first != second:
            start, end = self._span(node.args[0])[0], self._span(node.args[1])[1]
            self._put("arguments", node, start, end, f"{second}, {first}")

    def _between(self, first: ast.expr, second: ast.expr) -> tuple[int, int]:
        return self._span(first)[1], self._span(second)[1]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _measures_time(node: ast.expr) -> bool:
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(_name(function) in CLOCKS for function in calls)


def _sides(node: ast.BinOp) -> Iterator[ast.expr]:
    """The operands that are no numbers."""
    for side in (node.left, node.right):
        if not (isinstance(side, ast.Constant) and isinstance(side.value, int | float)):
            yield side
