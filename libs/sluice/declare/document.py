"""A YAML file as plain data that still knows the line of every value.

YAML 1.2 rules apply, so `on`, `yes` and `no` are words. Text may name environment variables:
`${VAR:-default}`. In a description, which people read, a variable that is set keeps its name.
Numbers, texts, booleans and null become Python's. Dates stay text, so an impossible date is a
mistake of its key, not of the file.

In `{...}` and `[...]`, YAML ends a value at every comma outside quotes. `{a: coalesce(x, y)}` gives
the value `coalesce(x` and a key `y)` without a value. Such values are found and refused.
"""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, takewhile
from operator import getitem
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString, ScalarString

from sluice.language.names import near


def count_unclosed(text: str) -> int:
    """Count the parentheses open at the text's end; below 0 if some were never opened."""
    return text.count("(") - text.count(")")


def split_by_commas(node: CommentedMap | CommentedSeq) -> str:
    """Return the first value cut by commas, put together again; '' if there is none."""
    if not node.fa.flow_style():
        return ""
    parts = _parts(node)
    for i, (value, _) in enumerate(parts):
        rest = [part for part, is_bare in parts[i + 1 :] if is_bare]
        joined = accumulate(rest, "{}, {}".format, initial=value)
        whole = next((text for text in joined if count_unclosed(text) <= 0), "")
        if count_unclosed(value) > 0 and whole:
            return whole
        # A text of several words after a cut value is a key without a value.
        words = [text for text, _ in takewhile(lambda p: p[1] and " " in p[0], parts[i + 1 :])]
        if value and words and isinstance(node, CommentedMap):
            return ", ".join([value, *words])
    return ""


def _parts(node: CommentedMap | CommentedSeq) -> list[tuple[str, bool]]:
    """Return unquoted texts in order, each with whether it may continue the one before it."""
    if isinstance(node, CommentedSeq):
        return [(_bare(item), bool(_bare(item))) for item in node]
    pairs = node.items()
    return [(_bare(k), bool(_bare(k))) if v is None else (_bare(v), False) for k, v in pairs]


def _bare(value: object) -> str:
    is_bare = isinstance(value, str) and not isinstance(value, ScalarString)
    return str(value) if is_bare else ""


Where = tuple[str | int, ...]
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Errors that the library raises for unforeseen text, such as a mapping as a key.
FAILURES = (YAMLError, ValueError, RecursionError, TypeError, LookupError, AttributeError)
MOST_NODES = 200_000
BRACES = "; in a value without quotes, { begins a mapping: quote one that has braces"
QUOTE = "; inside {...} and [...] a comma ends a value: quote one that has commas"
DESCRIBED = (1, 3)  # parts of a description's place: of a pipeline, of a table
TELLING = 4  # characters: shorter values are not secrets, and occur in many words


class _Constructor(RoundTripConstructor):
    def as_written(self, node: ScalarNode) -> str:
        return str(node.value)


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", _Constructor.as_written)


class BrokenDocument(ValueError):
    """Text that is not YAML, or not a mapping. `problems`: pairs of a line and what is wrong."""

    def __init__(self, line: int, problem: str, *more: tuple[int, str]) -> None:
        super().__init__(problem)
        self.problems = ((line, problem), *more)


@dataclass
class Document:
    """Data of one file, with the line of each place, its mistakes and its variables.

    `blocks`: lines of texts that begin with `>` or `|`. `variables`: places that name a variable,
    with the file's own text there, including defaults. `values`: the environment's values of these
    variables. `texts`: those with a variable, as the file has them. `files`: places that lie in
    other files, with all below them.
    """

    path: str
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Where, int] = field(default_factory=dict)
    blocks: dict[Where, dict[int, str]] = field(default_factory=dict)
    mistakes: list[tuple[Where, str]] = field(default_factory=list)
    variables: dict[Where, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    texts: dict[Where, str] = field(default_factory=dict)
    files: dict[Where, str] = field(default_factory=dict)

    def file(self, where: Where) -> str:
        """Return the file of that place: the document's own, unless another one has it."""
        while where and where not in self.files:
            where = where[:-1]
        return self.files.get(where, self.path)

    def values_below(self, keys: Collection[str]) -> dict[str, str]:
        """Return the environment's values of variables that are named below these keys."""
        texts = (text for where, text in self.texts.items() if where[0] in keys)
        named = {found[1] for text in texts for found in VARIABLE.finditer(text)}
        return {name: value for name, value in self.values.items() if name in named}

    def fields_as_written(self, where: Where) -> dict[str, Any]:
        """Return those fields of a mapping that name variables, without the variables' values."""
        found: dict[str, Any] = {}
        for place, text in self.texts.items():
            inner = place[len(where) :]
            if inner and place[: len(where)] == where:
                if (key := str(inner[0])) not in found:
                    found[key] = deepcopy(self.at((*where, key)))
                part: Any = found
                reduce(getitem, inner[:-1], part)[inner[-1]] = text
        return found

    def at(self, where: Where) -> Any:
        """Return the data at that place, which exists."""
        data: Any = self.data
        return reduce(getitem, where, data)

    def own(self, where: Where, value: str) -> str:
        """Return the file's own text for a value at that place, without the environment's part."""
        return self.variables.get(where, value)

    def line(self, where: Where) -> int:
        """Return the line of that place, or of the nearest existing place around it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)

    def locate(self, where: Where, message: str) -> tuple[str, int, str]:
        """Return the file and line of a place, and the message.

        In another file, the line of a text that the message begins with is one of that file.
        """
        file, line = self.file(where), self.line_of(where, message)
        found = re.match(r"line (\d+): ", message) if file != self.path else None
        if found is None:
            return file, line, message
        last = max(self.blocks.get(where, ()), default=self.line(where))
        line = min(self.line(where) + int(found[1]) - 1, last)
        return file, line, message[found.end() :]

    def line_of(self, where: Where, message: str) -> int:
        """Return the line of that place, or the line within its text that the message quotes.

        In a text of several lines, that is the first line with what the message quotes.
        """
        block = self.blocks.get(where, {})
        for part in re.findall(r"'([^']+)'", message):
            word = re.compile(rf"(?<!\w){re.escape(part)}(?!\w)")
            if found := next((n for n, line in block.items() if word.search(line)), None):
                return found
        return min(block, default=self.line(where))


def hide_values(text: str, values: Mapping[str, str], given: str = "") -> str:
    """Replace values of variables in a message, also as SQL quotes them, with the variables' names.

    Values in `given` stay. Digits are replaced where they are a whole number.
    """
    names: dict[str, str] = {}
    for name, value in values.items():
        spelled = (value, value.replace("'", "\\'"), value.replace("'", "''"))
        names |= dict.fromkeys(spelled, name) if len(value) >= TELLING else {}
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    parts = (rf"(?<!\d){v}(?!\d)" if v.isdecimal() else re.escape(v) for v in longest_first)
    return re.sub(
        "|".join(parts),
        lambda of: of[0] if of[0] in given else f"${{{names[of[0]]}}}",
        text,
    )


def read_document(path: Path, shown: str, environ: Mapping[str, str]) -> Document:
    """Read the document in that file; BrokenDocument if it is not a YAML mapping."""
    yaml = YAML(typ="rt", pure=True)
    yaml.Constructor = _Constructor
    yaml.preserve_quotes = True
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.load(text)
    except DuplicateKeyError as error:
        raise _named_twice(error) from None
    except MarkedYAMLError as error:
        raise _broken(error) from None
    except FAILURES as error:
        raise BrokenDocument(1, f"can't read this as YAML: {str(error).splitlines()[0]}") from None
    if tree is not None and not isinstance(tree, CommentedMap):
        raise BrokenDocument(1, "a mapping of keys to values is expected")
    document = Document(shown)
    reader = _Reader(document, environ, text.splitlines())
    document.data = reader.plain(tree or CommentedMap(), (), 1, ())
    if reader.cut:
        first, *more = reader.cut
        raise BrokenDocument(*first, *more)
    return document


def _named_twice(error: DuplicateKeyError) -> BrokenDocument:
    name = re.search(r'duplicate key "(.*?)" with value', str(error.problem), re.DOTALL)
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    found = name[1] if name else "a key"
    hint = QUOTE if count_unclosed(found) < 0 else ""
    return BrokenDocument(line, f"{found!r} is given twice in one mapping{hint}")


def _broken(error: MarkedYAMLError) -> BrokenDocument:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context or "broken").splitlines()[0]
    hint = QUOTE if "flow" in str(error.context) else ""
    if hint and problem.endswith("but got '{'"):
        hint = BRACES
    return BrokenDocument(mark.line + 1 if mark else 1, f"can't read this as YAML: {problem}{hint}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@dataclass
class _Reader:
    document: Document
    environ: Mapping[str, str]
    text: list[str]
    nodes: int = 0
    cut: list[tuple[int, str]] = field(default_factory=list)

    def plain(self, node: Any, where: Where, line: int, inside: tuple[int, ...]) -> Any:
        self.nodes += 1
        if id(node) in inside or self.nodes > MOST_NODES:
            raise BrokenDocument(line, "an alias (*name) repeats the document too often")
        self.document.lines[where] = line
        if isinstance(node, CommentedMap | CommentedSeq) and (cut := split_by_commas(node)):
            self.cut.append((line, f"{cut!r} has no quotes{QUOTE}"))
        if isinstance(node, CommentedMap):
            return self._mapping(node, where, (*inside, id(node)))
        if isinstance(node, CommentedSeq):
            return self._sequence(node, where, (*inside, id(node)))
        return self._scalar(node, where)

    def _mapping(self, node: CommentedMap, where: Where, inside: tuple[int, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in node.items():
            line = node.lc.key(key)[0] + 1 if key in node.lc.data else self.document.line(where)
            result[str(key)] = self.plain(value, (*where, str(key)), line, inside)
            if isinstance(value, FoldedScalarString | LiteralScalarString):
                self.document.blocks[(*where, str(key))] = self._block(node.lc.value(key)[0] + 1)
        return result

    def _block(self, begin: int) -> dict[int, str]:
        """Return a text's lines by number: those after line `begin` with deeper indentation."""
        deep = _indent(next((line for line in self.text[begin:] if line.strip()), ""))
        found: dict[int, str] = {}
        for number, line in enumerate(self.text[begin:], begin + 1):
            if line.strip() and _indent(line) < deep:
                break
            found[number] = line
        return found

    def _sequence(self, node: CommentedSeq, where: Where, inside: tuple[int, ...]) -> list[Any]:
        return [
            self.plain(value, (*where, i), node.lc.item(i)[0] + 1, inside)
            for i, value in enumerate(node)
        ]

    def _scalar(self, node: Any, where: Where) -> Any:
        if isinstance(node, bool) or node is None:
            return node
        for kind in (int, float, str):
            if isinstance(node, kind):
                return self._with_variables(str(node), where) if kind is str else kind(node)
        self.document.mistakes.append((where, f"{node!r} is not a value that can be used here"))
        return None

    def _with_variables(self, text: str, where: Where) -> str:
        if VARIABLE.search(text):
            self.document.texts[where] = text
            self.document.variables[where] = VARIABLE.sub(lambda match: match[2] or "", text)
        return VARIABLE.sub(lambda match: self._variable(match, where), text)

    def _variable(self, match: re.Match[str], where: Where) -> str:
        name, default = match[1], match[2]
        if name in self.environ:
            self.document.values[name] = self.environ[name]
            if where[-1] == "description" and len(where) in DESCRIBED:
                return f"${{{name}}}"
        if name in self.environ or default is not None:
            return self.environ.get(name) or default or ""
        guess = near(name, self.environ)
        meant = f"did you mean {guess!r}? or " if guess else ""
        problem = f"unknown environment variable {name!r} without a default"
        message = f"{problem}; {meant}write ${{{name}:-default}}"
        self.document.mistakes.append((where, message))
        return name
