"""Explanation of one row, by `sluice why` in a process of its own.

So the server imports nothing that computes. The command reads tables without Spark.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice.airflow.connections import environ
from sluice.airflow.page.visit import Visit, pipeline_of
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.language.internal import STATE, internal
from sluice.pages.elements import Card, Chapter, Content, Entry, Listing, Page, Properties, Text
from sluice.pages.wording import cell, counted, data
from sluice.read.naming import naming_options
from sluice.report.entries import chapter

LONGEST = 60  # seconds
ROWS = "10"  # shown of each table
ANOTHERS = "Rows, runs and files of {} are not shown, because you may not see them."


def why(project: Project, config: Path, row: Sequence[str]) -> dict[str, Any]:
    """Return what `sluice why` says of a row, or its `trouble`. `row`: its arguments."""
    python = project.airflow.python or sys.executable
    command = [python, "-m", "sluice.cli.main", "why", "--config", str(config)]
    try:
        done = subprocess.run(
            [*command, "--rows", ROWS, "--json", *row],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            env=environ(project),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"trouble": str(error)}
    if done.returncode:  # warnings name files of other pipelines
        said = (line for line in done.stderr.splitlines() if not line.startswith("warning: "))
        return {"trouble": "\n".join(said)}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def arguments(table: str, given: Sequence[tuple[str, str]]) -> list[str]:
    """Return the command's arguments that name a row; values can't be taken for options."""
    known = {"partition", *naming_options()}
    options = (f"--{name}={value}" for name, value in given if name in known)
    return [*options, "--", table, *(value for name, value in given if name == "key")]


def page(visit: Visit, table: Table, answer: Mapping[str, Any]) -> Page:
    """Return the page of an explanation."""
    title, path = f"Why · {table.id} · Sluice", visit.path(visit.table(table.id))
    heading, trouble = "Why this row is here", answer.get("trouble")
    if trouble:
        wrong = chapter(Text("It can't be shown", "wrong"), [trouble])
        return Page(title, heading, (), wrong, visit.foot, path)
    properties: list[tuple[str, Content]] = [
        ("Last change", f"{answer['change']}, version {answer['version']}"),
        ("When", answer["at"]),
        ("Batch", answer["batch"]),
        ("Run", visit.run(table.pipeline, answer["run"])),
    ]
    parts = [p for p in answer["from"] if not p["table"].endswith(internal("", STATE))]
    inputs = (_input(visit, part) for part in parts if visit.sees_table(part["table"]))
    others = {pipeline_of(p["table"]) for p in parts if not visit.sees_table(p["table"])}
    hidden = [ANOTHERS.format(", ".join(sorted(others)))] if others else []
    rows = [_change(answer), *inputs, *chapter("From other pipelines", hidden)]
    return Page(title, heading, [Properties(properties)], rows, visit.foot, path)


def _change(answer: Mapping[str, Any]) -> Chapter:
    before, after = answer["before"] or {}, answer["after"] or {}
    columns = [(name, "mono") for name in ("Column", "Before", "After")]
    rows = [
        [name, *(cell(row[name]) if row else None for row in (before, after))]
        for name in after or before
    ]
    return Chapter("The row, before and after that change", [Listing(columns, rows)])


def _input(visit: Visit, part: Mapping[str, Any]) -> Chapter:
    version = "" if part["version"] is None else f", version {part['version']}"
    rows, many = part["rows"], counted(part["count"], "row")
    few = f", the first {len(rows):,} shown" if len(rows) < part["count"] else ""
    count = Text(f" {many}{version}{few}", "soft small")
    deliveries = [_delivery(visit, part, one) for one in part["deliveries"]]
    table = data(rows, list(rows[0])) if rows else ""
    shown = [table, Card(deliveries) if deliveries else ""]
    return Chapter(["From ", visit.table(part["table"]), count], shown)


def _delivery(visit: Visit, part: Mapping[str, Any], one: Mapping[str, Any]) -> Entry:
    made = one["commit"] or {}
    run = [", in ", visit.run(pipeline_of(part["table"]), made["run"])] if made.get("run") else ""
    interval = f"[{one['interval_start']}, {one['interval_end']})"
    files = [Text(file, "line") for file in one["files"]]
    return Entry([f"{counted(one['rows'], 'row')} delivered by {interval}", run], detail=files)
