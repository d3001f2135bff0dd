"""Results of Great Expectations' checks of expectations, kept from one command to the next.

Importing it takes seconds, so plain expectations are not checked by it. Its findings depend only on
the expectation and on its version. Only checks without a finding are kept. The file can be deleted
any time. If the library is not installed, nothing is checked: the project can be read and planned,
but no batch can be judged.
"""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from sluice.cache import cache_folder
from sluice.declare.expectation import Expectation
from sluice.extras import is_installed
from sluice.gate import engine
from sluice.gate.rules.plain import is_plain


def mistakes(expectation: Expectation) -> list[str]:
    """Return Great Expectations' complaints about an expectation's name and arguments."""
    return [] if is_plain(expectation) else _answer(engine.mistakes, expectation)


def not_on_spark(expectation: Expectation) -> list[str]:
    """Return a mistake if Great Expectations has the expectation, but not for Spark."""
    return _answer(engine.not_on_spark, expectation)


def _answer(ask: Callable[[Expectation], list[str]], expectation: Expectation) -> list[str]:
    if not is_installed("quality"):
        return []
    file = cache_folder() / f"expectations-{version('great-expectations')}.json"
    settled, question = _kept(file), _question(ask.__name__, expectation)
    if question in settled:
        return []
    found = ask(expectation)
    if not found:
        _keep(file, settled | {question})
    return found


def _question(about: str, expectation: Expectation) -> str:
    asked = [about, expectation.type, expectation.kwargs]
    text = json.dumps(asked, sort_keys=True, default=lambda v: f"{type(v).__name__} {v}")
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(file: Path) -> set[str]:
    try:
        return set(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return set()


def _keep(file: Path, settled: set[str]) -> None:
    """Write the file atomically; without a writable folder, the next process asks again."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(sorted(settled), indent=0), "utf-8")
        draft.replace(file)
