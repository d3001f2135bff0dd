"""Messages of mistakes: a test says what one must name, a text file beside it holds the sentence.

The file has the test's name with `.txt`: the name of each case, and below it the message, indented.
`--update-messages` writes it. A case without an entry fails, and so does an entry without a case.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest

COLLECTED = pytest.StashKey[list[pytest.Item]]()  # all of the files, also what is deselected later
AND_LATER = " … "

Wording = Callable[[list[str] | str, str], None]


def each(names: str, *cases: tuple[object, ...] | str) -> pytest.MarkDecorator:
    """One test per case: its last value is what the message must name, the one before its name.

    Cases of two texts may be given as lines: a mistake, and what is told of it, indented.
    """
    if isinstance(cases[0], str):
        lines = cases[0].strip().splitlines()
        cases = tuple(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))
    named = [pytest.param(*case, id=str(case[-2] or case[0])) for case in cases]
    return pytest.mark.parametrize(names, named)


def cells(text: str) -> list[tuple[str, ...]]:
    """Cases as the rows of a text, with bars between their cells.

    A line that is indented further goes on with the row before.
    """
    rows = re.sub(r"\n +", " ", dedent(text).strip("\n"))
    return [tuple(re.split(r"\s\|(?:\s|$)", row)) for row in rows.split("\n")]


class Kept:
    """The messages of one file of tests."""

    def __init__(self, path: Path, *, renew: bool) -> None:
        self.path, self.renew = path, renew
        self.messages = _read(path)
        self.met: dict[str, str] = {}

    def compare(self, case: str, message: str) -> None:
        self.met[case] = message
        kept = message if self.renew else self.messages.get(case)
        hint = f"or write {self.path.name} by --update-messages"
        assert message == kept, f"told:\n{message}\nkept:\n{kept}\n{hint}"

    def close(self, cases: list[str]) -> None:
        """Write what has changed; require that each entry belongs to a case."""
        if self.renew:
            messages = self.messages | self.met
            kept = [f"{c}\n{indent(messages[c], '  ')}\n" for c in cases if c in messages]
            self.path.write_text("".join(kept), encoding="utf-8")
        else:
            unused = self.messages.keys() - set(cases)
            assert not unused, f"no test has these entries of {self.path.name}: {sorted(unused)}"


def _read(path: Path) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.startswith("  "):
            found[[*found][-1]].append(line[2:])
        else:
            found[line] = []
    return {case: "\n".join(lines) for case, lines in found.items()}


@pytest.fixture(scope="module")
def kept_messages(request: pytest.FixtureRequest) -> Iterator[Kept]:
    """The messages of the test's file."""
    renew = request.config.getoption("update_messages")
    kept = Kept(request.path.with_suffix(".txt"), renew=renew)
    yield kept
    is_whole = not any("::" in argument for argument in request.config.args)
    if is_whole and not request.config.getoption("lf", default=False):
        of_file = [item for item in request.config.stash[COLLECTED] if item.path == request.path]
        kept.close([item.name for item in of_file])


@pytest.fixture
def wording(request: pytest.FixtureRequest, kept_messages: Kept) -> Wording:
    """Require that a message begins with and names what is asked, and that its words are kept."""

    def wording(found: list[str] | str, told: str) -> None:
        (message,) = [found] if isinstance(found, str) else found
        rest = message
        for nth, name in enumerate(told.split(AND_LATER)):
            before, named, rest = rest.partition(name)
            assert named, f"{name!r} is not named, or out of order: {message}"
            assert nth or not before, f"it does not begin with {name!r}: {message}"
        kept_messages.compare(request.node.name, message)

    return wording
