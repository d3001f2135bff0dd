"""The process that reads a spark-pipelines project: `python -m sluice.spark_pipelines SPEC RESULT`.

It imports the users' code, so it is a process of its own: nothing that the code does there changes
the process that loads the configuration. The result is a file of JSON: the declarations with the
place of each, mistakes, what is left out, whether that may change without a change of the files,
and the environment variables that were read. RESULT.reading has the file that is being read.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.spark_pipelines.pipeline import Declarations


EMPTY = "no file of its `libraries` defines a table: name files, or a folder as folder/**"


class _Environment(os._Environ):  # type: ignore[type-arg] # noqa: SLF001 - to be os.environ
    """The environment, noting which variables are read."""

    asked: set[str] = set()  # noqa: RUF012

    def __getitem__(self, key: str) -> str:
        self.asked.add(str(key))
        return str(super().__getitem__(key))


def read(spec_path: Path, note: Callable[[str], object] = str) -> dict[str, Any]:
    """Return what a project declares, as JSON. `note`: gets the file that is read; at last ''."""
    from pyspark.errors import PySparkException
    from pyspark.pipelines.cli import load_pipeline_spec
    from yaml import MarkedYAMLError  # type: ignore[import-untyped]

    from sluice.spark_pipelines.definitions import read_definitions
    from sluice.spark_pipelines.elements import Elements, Place
    from sluice.spark_pipelines.pipeline import Declarations

    found: Declarations | None = None
    elements = Elements()
    try:
        spec = load_pipeline_spec(spec_path)
        _Environment.asked.clear()
        elements = read_definitions(spec_path, spec, note)
        note("")
        found = Declarations(spec, spec_path, elements)
        found.declare_all()
        if not elements.datasets and not elements.mistakes:
            elements.mistakes.append((Place(spec_path.name, 1), EMPTY))
    except (PySparkException, AttributeError, TypeError, KeyError, ValueError) as error:
        where, what = Place(spec_path.name, 1), " ".join(str(error).split())
        elements.mistakes.append((where, f"can't read this as a pipeline's spec: {what}"))
    except MarkedYAMLError as error:
        where = Place(spec_path.name, (error.problem_mark.line if error.problem_mark else 0) + 1)
        elements.mistakes.append((where, f"can't read this as YAML: {error.problem}"))
    return {
        **(_describe(found) if found else {"is_unsettled": True}),
        "mistakes": [[p.file, p.line, problem] for p, problem in elements.mistakes],
        "asked": sorted(_Environment.asked),
    }


def _describe(found: "Declarations") -> dict[str, Any]:
    tables = found.tables
    return {
        "name": tables.pipeline,
        "storage": tables.local(found.spec.storage),
        "sections": tables.sections,
        "places": [[where, p.file, p.line] for where, p in tables.places.items()],
        "blocks": [[where, [*lines.items()]] for where, lines in tables.blocks.items()],
        "left_out": [[p.file, p.line, *why] for p, *why in found.refused],
        "streams": {source: sorted(readers) for source, readers in tables.streams.items()},
        "datasets": [tables.name(dataset) for dataset in tables.elements.datasets],
        "is_unsettled": tables.is_unsettled,
    }


def main() -> None:
    """Read the project of the first argument into the file of the second."""
    spec, result = sys.argv[1:]
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # columns are a client's, as in the runner
    os.environ.__class__ = _Environment
    found = read(Path(spec), Path(f"{result}.reading").write_text)
    Path(result).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
