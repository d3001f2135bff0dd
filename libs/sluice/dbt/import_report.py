"""Report of an import: the outcome of each model and test, for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sluice.terminal.output import counted


@dataclass
class ImportReport:
    """Outcome of each model and test, by name; the texts are reasons.

    `unjudged`: views checked in part, over inputs whose columns aren't known. `delivered`: what the
    pipeline's sources and dimensions are in dbt. `renamed`: dbt's name -> the pipeline's.
    """

    kept: list[str] = field(default_factory=list)
    inlined: list[str] = field(default_factory=list)
    preferred: dict[str, str] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)
    not_understood: dict[str, str] = field(default_factory=dict)
    not_taken: dict[str, str] = field(default_factory=dict)
    cautions: dict[str, str] = field(default_factory=dict)
    delivered: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    expectations: int = 0
    by_key: int = 0
    untested: dict[str, str] = field(default_factory=dict)

    @property
    def views(self) -> int:
        """Number of models that became views."""
        return len(self.kept) + len(self.preferred) + len(self.unjudged)


def lines(report: ImportReport) -> Iterator[str]:
    """Yield the report's lines."""
    yield from _names(f"kept incrementally ({len(report.kept)})", report.kept)
    yield from _names(
        f"inlined, because dbt keeps no table ({len(report.inlined)})", report.inlined
    )
    for title, reasons in (
        ("computed whole in each batch by Spark (incremental: preferred)", report.preferred),
        ("checked in part", report.unjudged),
        ("not understood, and left out", report.not_understood),
        ("not imported", report.not_taken),
        ("to be checked, because Spark may differ", report.cautions),
        ("delivered from outside", report.delivered),
        ("named otherwise", report.renamed),
    ):
        yield from _reasons(title, reasons)
    yield f"tests: {_tests(report)}"
    yield from _reasons("tests without an equivalent", report.untested)


def _names(title: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{title}: {', '.join(names)}"


def _reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    if reasons:
        yield f"{title} ({len(reasons)}):"
        yield from (f"  {name}: {reason}" for name, reason in reasons.items())


def _tests(report: ImportReport) -> str:
    by_key = f", {report.by_key} kept by keys" if report.by_key else ""
    return f"{counted(report.expectations, 'expectation')}{by_key}"
