"""A pipeline's declarations for a dbt project, checked one by one.

Each model's view is resolved by the same code as a declared one, over the tables made before it.
Inputs that no view provides are delivered from outside: dbt's sources and seeds, snapshots, and
models that are not imported.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import Any

from sluice.dbt import (
    DataTest,
    DbtNode,
    DbtProject,
    Relations,
    clean,
    column_names,
    free,
    free_names,
    type_in_spark,
)
from sluice.dbt.queries import translate, translated_condition
from sluice.declare.building import DeclarationFile, build, query_view, read_tables, resolved_alone
from sluice.declare.document import VARIABLE, Document
from sluice.declare.mistakes import Mistakes
from sluice.declare.resolution import Review
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import Expectation
from sluice.errors import ConfigError
from sluice.language.types import GAP
from sluice.terminal.output import pluralize


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
        yield from _list_reasons(title, reasons)
    by_key = f", {report.by_key} kept by keys" if report.by_key else ""
    yield f"tests: {pluralize(report.expectations, 'expectation')}{by_key}"
    yield from _list_reasons("tests without an equivalent", report.untested)


def _names(title: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{title}: {', '.join(names)}"


def _list_reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    if reasons:
        yield f"{title} ({len(reasons)}):"
        yield from (f"  {name}: {reason}" for name, reason in reasons.items())


ExpectationFields = dict[str, Any]
UNKNOWN_MACRO = "Sluice has no expectation like it; a view in SQL can show the rows that break it"
THRESHOLDS = "it counts failures (`warn_if`, `error_if` or `limit`), which no expectation does"


def key_of(checks: Iterable[DataTest]) -> str:
    """Return the column of one node that is tested to be unique and never null; '' if none."""
    tested: dict[str, set[str]] = defaultdict(set)
    for check in checks:
        if not check.where and not check.has_thresholds:
            tested[check.column].add(check.macro)
    return next((c for c, macros in tested.items() if {"unique", "not_null"} <= macros), "")


def expectation(check: DataTest, types: Mapping[str, str], dialect: str) -> ExpectationFields:
    """Return the expectation that corresponds to a test. Raises ValueError, with the reason, if
    there is none.

    `types`: the table's known columns.
    """
    _check_usual(check)
    if check.macro not in LIKE:
        raise ValueError(UNKNOWN_MACRO)
    fields = LIKE[check.macro](check, types.get(check.column.lower(), ""))
    if check.where:
        fields["row_condition"] = translated_condition(check.where, dialect)
    return fields


def orphans(check: DataTest, child: str, parent: str, dialect: str) -> ExpectationFields:
    """Return the view of rows without a matching row in the parent, with its expectation."""
    _check_usual(check)
    column, other = _quote(check.column), _quote(str(check.arguments.get("field", "")))
    conditions = [f"{column} IS NOT NULL"]
    if check.where:
        conditions.append(f"({translated_condition(check.where, dialect)})")
    rows = f"SELECT * FROM {child} WHERE {' AND '.join(conditions)}"
    sql = f"SELECT c.*\nFROM ({rows}) AS c\nLEFT ANTI JOIN {parent} AS p ON c.{column} = p.{other}"
    none = {"type": "expect_table_row_count_to_be_between", "max_value": 0}
    failing = {"on_failure": "stop"} if check.is_error else {"over": "table"}
    about = f"Rows of {child} whose {check.column} is no {other} of {parent}"
    return {"description": about, **query_view(sql), "expect": [{**none, **failing}]}


def _check_usual(check: DataTest) -> None:
    if check.has_thresholds:
        raise ValueError(THRESHOLDS)


def _quote(name: str) -> str:
    return name.lower() if name.isidentifier() else f"`{name.lower()}`"


def _on_failure(check: DataTest) -> str:
    return "stop" if check.is_error else "warn"


def _not_null(check: DataTest, _type: str) -> ExpectationFields:
    return {
        "type": "expect_column_values_to_not_be_null",
        "column": check.column.lower(),
        "on_failure": _on_failure(check),
    }


def _unique(check: DataTest, _type: str) -> ExpectationFields:
    """Return a rule over the whole table, which only warns: a batch can't know other rows."""
    return {
        "type": "expect_column_values_to_be_unique",
        "column": check.column.lower(),
        "over": "table",
    }


def _accepted_values(check: DataTest, type_: str) -> ExpectationFields:
    values = list(check.arguments.get("values") or ())
    return {
        "type": "expect_column_values_to_be_in_set",
        "column": check.column.lower(),
        "value_set": [str(value) for value in values] if type_ == "STRING" else values,
        "on_failure": _on_failure(check),
    }


LIKE: Mapping[str, Callable[[DataTest, str], ExpectationFields]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
}

FIELDS = ("description", "kind", "incremental", "sql", "expect")
Find = Callable[[str], str]  # path of a file in the dbt project -> its path for Sluice, or ''
ANALYSIS = "an analysis, which builds no table"
NOT_COMPILED = "the manifest has no compiled SQL of it: `dbt compile --full-refresh`"


@dataclass
class Imported:
    """A pipeline's tables by section, and the report of how they were made."""

    project: DbtProject
    name: str
    find: Find
    review: Review
    sections: dict[str, dict[str, ExpectationFields]] = field(
        default_factory=lambda: {"sources": {}, "dimensions": {}, "views": {}}
    )
    report: ImportReport = field(default_factory=ImportReport)

    def __post_init__(self) -> None:
        self._names = free_names(self.project.nodes)
        self._columns_named = column_names(self.project.nodes)
        self._relations = Relations(self.project)
        self._tables: dict[str, Table] = {}
        self._uncertain: set[str] = set()  # tables of which not all columns are known
        self._declared: dict[
            str, ExpectationFields
        ] = {}  # by node, also of what no kept view reads
        self._checks: dict[str, list[DataTest]] = defaultdict(list)
        for check in self.project.checks:
            named_so = self._columns_named.get(check.column.lower(), check.column)
            self._checks[check.node].append(replace(check, column=named_so))

    def add(self, models: Iterable[str]) -> None:
        """Add a view for each of these nodes, which come in order, and what the views read."""
        for model in models:
            self._add(self.project.nodes[model])
        for node, fields in self._declared.items():
            for check in self._checks[node]:
                self._expect(check, fields)
        self.report.not_taken |= dict.fromkeys(self.project.analyses, ANALYSIS)
        for check in self._checks[""]:
            self.report.untested[check.name] = (
                "it is a test with its own query; write it as a view in SQL"
            )

    @property
    def next_steps(self) -> str:
        """Remaining work before the first run, as text."""
        has_gaps = any(GAP in fields["schema"] for fields in self.sections["sources"].values())
        first = "fill in the `?`, then " if has_gaps else ""
        return f"{first}look over the paths and start_date, `sluice validate`, `sluice plan`"

    def _add(self, node: DbtNode) -> None:
        if node.materialized == "ephemeral":
            self.report.inlined.append(node.name)
        elif why := _not_taken(node):
            self.report.not_taken[node.name] = why
        else:
            try:
                self._add_view(node)
            except ValueError as error:
                self.report.not_understood[node.name] = str(error)

    def _add_view(self, node: DbtNode) -> None:
        if not node.sql.strip():
            raise ValueError(NOT_COMPILED)
        name = self._names[node.id]
        query = translate(
            node, self.project.dialect, self._relations, self._names, self.name, self._columns_named
        )
        made = {read: self._declare_input(self.project.nodes[read]) for read in query.reads}
        view: ExpectationFields = {**_describe(node), **query_view(f"{query.text}\n")}
        unknown = [self._names[r] for r in query.reads if self._id(r) in self._uncertain]
        if why := self._judge(name, view):
            view = _compute_whole(view)
            self.report.preferred[name] = why
        elif unknown:
            self.report.unjudged[name] = f"the columns of {', '.join(unknown)} aren't known"
        else:
            self.report.kept.append(name)
        self._uncertain |= {self._id(node.id)} if unknown else set()
        for read, delivered in made.items():
            self._declare(self.project.nodes[read], delivered)
        self._declared[node.id] = self.sections["views"][name] = view
        self.report.cautions |= {name: "; ".join(query.cautions)} if query.cautions else {}
        self._note_name(node)

    def _id(self, node: str) -> str:
        return f"{self.name}.{self._names[node]}"

    def _judge(self, name: str, fields: ExpectationFields) -> str:
        """Add the view's table; return why it can't be maintained incrementally, '' if it can.

        Raises ValueError if it can't be computed at all. Where columns aren't known, only what is
        wrong whatever they are counts.
        """
        table_id = f"{self.name}.{name}"
        resolved = partial(resolved_alone, Graph(self._tables), table_id=table_id)
        try:
            self._tables[table_id] = resolved(fields, uncertain=self._uncertain)
        except ConfigError as refused:
            try:
                self._tables[table_id] = resolved(_compute_whole(fields), uncertain=self._uncertain)
            except ConfigError as error:
                raise ValueError(_without_places(error)) from None
            return _without_places(refused)
        return ""

    def _declare_input(self, node: DbtNode) -> tuple[str, ExpectationFields]:
        if node.id in self._declared:
            return "", {}
        section, fields = self._as_files(node)
        name, mistakes = self._names[node.id], Mistakes()
        document = Document("dbt", {"pipeline": self.name, section: {name: fields}})
        read = read_tables(DeclarationFile(document), mistakes)
        self._tables |= build({d.id: d for d in read.declared}, mistakes).tables
        self._uncertain |= {self._id(node.id)} - {*self._tables}
        return section, fields

    def _as_files(self, node: DbtNode) -> tuple[str, ExpectationFields]:
        """Return a seed with a key as a dimension of dbt's own file, all others as sources."""
        key, columns = key_of(self._checks[node.id]).lower(), self._columns(node)
        file = self.find(node.path) if node.type == "seed" and key else ""
        name = self._names[node.id]
        path = file or f"landing/{name}/{{interval_start:%Y-%m-%d}}/"
        fields: ExpectationFields = {
            **_describe(node),
            "path": path,
            "format": "csv" if node.type == "seed" else "parquet",
            "schema": ", ".join(f"{c} {t}" for c, t in columns.items()) or GAP,
            **({"names": names} if (names := self._named_otherwise(node)) else {}),
            **({"key": [key]} if key in columns else {}),
        }
        return ("dimensions" if file else "sources"), fields

    def _columns(self, node: DbtNode) -> dict[str, str]:
        names, dialect = self._columns_named, self.project.dialect
        lower = ((name.lower(), type_) for name, type_ in node.columns.items())
        return {names.get(name, name): type_in_spark(type_, dialect) for name, type_ in lower}

    def _named_otherwise(self, node: DbtNode) -> dict[str, str]:
        """Return the columns whose names can't be declared: name -> that in the files."""
        found = ((self._columns_named.get(name.lower()), name) for name in node.columns)
        return {name: written for name, written in found if name}

    def _declare(self, node: DbtNode, delivered: tuple[str, ExpectationFields]) -> None:
        section, fields = delivered
        if not fields:
            return
        name = self._names[node.id]
        self._declared[node.id] = self.sections[section][name] = fields
        what = f"{node.type} {node.group}.{node.name}, from {fields['path']}"
        gaps = "; fill in the `?` of its schema" if GAP in fields["schema"] else ""
        self.report.delivered[name] = f"{what}{gaps}"
        self._note_name(node)

    def _note_name(self, node: DbtNode) -> None:
        if self._names[node.id] != node.name:
            self.report.renamed[f"{node.type} {node.group}.{node.name}"] = self._names[node.id]

    def _expect(self, check: DataTest, fields: ExpectationFields) -> None:
        """Add the expectation that corresponds to a test, or report why there is none."""
        if check.macro in ("unique", "not_null") and [check.column.lower()] == fields.get("key"):
            self.report.by_key += 1
            return
        try:
            if check.macro == "relationships":
                self._add_orphans(check)
            else:
                self._add_expectation(check, fields)
        except ValueError as error:
            self.report.untested[check.name] = str(error)
        else:
            self.report.expectations += 1

    def _add_expectation(self, check: DataTest, fields: ExpectationFields) -> None:
        table_id = self._id(check.node)
        is_known = table_id not in self._uncertain
        columns: Mapping[str, str] = self._tables[table_id].columns if is_known else {}
        found = expectation(check, columns, self.project.dialect)
        if columns and found["column"] not in columns:
            raise ValueError(f"{self._names[check.node]} has no column {found['column']!r}")
        if problems := list(self.review(Expectation.model_validate(found), columns)):
            raise ValueError("; ".join(problems))
        fields.setdefault("expect", []).append(found)

    def _add_orphans(self, check: DataTest) -> None:
        if check.to not in self._declared:
            raise ValueError("the table that it refers to is not in the pipeline")
        child, parent = self._names[check.node], self._names[check.to]
        wanted = clean(f"{child}_{check.column}_not_in_{parent}")
        name = free([wanted], [*self._names.values(), *self.sections["views"]])
        view = orphans(check, child, parent, self.project.dialect)
        self.sections["views"][name] = _compute_whole(view) if self._judge(name, view) else view


def _not_taken(node: DbtNode) -> str:
    if node.type == "snapshot":
        return "a snapshot, whose history only dbt has; a dimension with `history` keeps its own"
    if not node.is_in_sql:
        return "a model in Python"
    return ""


def _describe(node: DbtNode) -> dict[str, Any]:
    """Return the description, which reads no variable of the environment."""
    text = VARIABLE.sub(r"$\1", node.description).strip()
    return {"description": text} if text else {}


def _compute_whole(view: ExpectationFields) -> ExpectationFields:
    fields = {**view, "incremental": "preferred"}
    return {name: fields[name] for name in FIELDS if name in fields}


def _without_places(error: ConfigError) -> str:
    return "; ".join(m.partition(".sql: ")[2] or m for m in error.mistakes)


def finder(manifest: Path, root: Path) -> Find:
    """Return how a file of the dbt project is found, from the folder of its manifest upwards."""
    folders = manifest.resolve().parents[:3]

    def find(path: str) -> str:
        file = next((f / path for f in folders if (f / path).is_file()), None)
        return Path(relpath(file, root.resolve())).as_posix() if file else ""

    return find
