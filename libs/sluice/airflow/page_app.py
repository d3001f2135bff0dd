"""Routes of the page, all behind Airflow's login.

A pipeline is shown to those who may see its DAG. Tables are read without Spark, at their current
versions; nothing is changed here.
"""

import json
import secrets
import subprocess
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from sqlalchemy import select
from starlette.status import HTTP_404_NOT_FOUND, HTTP_500_INTERNAL_SERVER_ERROR

from sluice.airflow.blueprint import airflows_config, mistakes, pipeline_files, project, site
from sluice.airflow.connections import environ, lent
from sluice.declare.project import PLACE, Project, without_message
from sluice.declare.table import Table
from sluice.errors import ConfigError, SluiceError
from sluice.gate.engine import file_of
from sluice.pages import Page, html
from sluice.read.naming import naming_options
from sluice.report import INDEX, Visit
from sluice.report.pages import Shown, not_a_sluice_dag, overview, table, tables
from sluice.report.pages import page as explanation
from sluice.report.publish import report_folder

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{nonce}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
UNSEEN = "the configuration has mistakes, in files that are not of your pipelines"
MENDING = "those who may see every pipeline see them here; `sluice validate` shows all of them"
LONGEST = 60  # seconds of an explanation
ROWS = "10"  # shown of each table that a row comes from
LEFT_OUT = "{} is left out until mistakes in its file, or of pipelines that it reads, are mended"
User = Annotated[Any, Depends(get_user)]
app = FastAPI(
    title="Sluice",
    dependencies=[Depends(get_user)],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
)


@app.exception_handler(SluiceError)
def refused(_: Request, error: SluiceError) -> Response:
    """Say in plain text what can't be shown, and what to do."""
    return PlainTextResponse(f"{error.message}\n{error.hint}", HTTP_500_INTERNAL_SERVER_ERROR)


@app.get("/")
def every_pipeline(request: Request, user: User) -> Response:
    """Show every pipeline that the user may see, with the state of its tables."""
    declared = _project(user)
    shown = [_pipeline(declared, name) for name in declared.pipelines if _may_see(user, name)]
    wrong = _mistakes(user, mistakes(airflows_config()))
    named = {*pipeline_files(airflows_config()).values()} - {"", *declared.pipelines}
    wrong += [LEFT_OUT.format(name) for name in sorted(named) if _may_see(user, name)]
    runs = _runs([pipeline.name for pipeline, _ in shown])
    return _answer(overview(_visit(request, user, declared), shown, wrong, declared.graph, runs))


@app.get("/pipelines/{name}")
def one_pipeline(request: Request, user: User, name: str) -> Response:
    """Show one pipeline: the tab of its DAG."""
    declared = _project(user)
    visit = _visit(request, user, declared)
    if name not in declared.pipelines or not _may_see(user, name):
        return _answer(not_a_sluice_dag(visit, name))
    shown = [_pipeline(declared, name)]
    return _answer(overview(visit, shown, graph=declared.graph, runs=_runs([name])))


@app.get("/tables/{name}")
def one_table(request: Request, user: User, name: str) -> Response:
    """Show one table: what its kind shows of its rows, its newest batches and its expectations."""
    declared = _project(user)
    found = _table(declared, user, name)
    with lent(declared, [found.id]):
        return _answer(table(_visit(request, user, declared), declared, found))


@app.get("/tables/{name}/why")
def one_row(request: Request, user: User, name: str) -> Response:
    """Show why one row is as it is: the commit that last changed it, and where it comes from."""
    declared = _project(user)
    found = _table(declared, user, name)
    row = arguments(found.id, request.query_params.multi_items())
    answer = why(declared, airflows_config(), row)
    return _answer(explanation(_visit(request, user, declared), found, answer))


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


@app.get("/report/{file}")
def report(user: User, file: str) -> Response:
    """Return a file of the quality report, which is about all pipelines.

    Pages of tables that were removed stay in the folder, and are of nobody's pipeline.
    """
    declared = _project(user)
    found = report_folder(declared) / file
    pages = (f"{name}.html" for name in declared.graph.tables)
    files = {INDEX, *pages, *map(file_of, declared.graph.tables)}
    if not _may_see_all(user) or file not in files or not found.is_file():
        raise HTTPException(HTTP_404_NOT_FOUND, "there is no such report yet")
    return FileResponse(found, media_type="text/html")


def _table(declared: Project, user: Any, name: str) -> Table:
    found = declared.graph.tables.get(name)
    if not found or not _may_see(user, found.pipeline):
        raise HTTPException(HTTP_404_NOT_FOUND, f"there is no table {name}")
    return found


def _project(user: Any) -> Project:
    """Return the project. Raises ConfigError with those mistakes alone that the user may see."""
    try:
        return project(airflows_config())
    except ConfigError as error:
        raise ConfigError(_mistakes(user, error) or [UNSEEN], hint=MENDING) from None


def _mistakes(user: Any, error: ConfigError | None) -> list[str]:
    """Return the mistakes in files of pipelines that the user may see; where, if not all of them.

    Those in other files, such as the settings, are for users who may see every pipeline.
    """
    files, shown = pipeline_files(airflows_config()), []
    is_whole = all(_may_see(user, name) for name in files.values() if name)
    for mistake in error.mistakes if error else ():
        place = PLACE.match(mistake)
        name = files.get(place["file"]) if place else None
        if _may_see(user, name) if name else _may_see_all(user):
            shown.append(mistake if is_whole else without_message(mistake))
    return shown


def _may_see_all(user: Any) -> bool:
    """True if the user may see every pipeline that a file names, also those with mistakes."""
    named = pipeline_files(airflows_config()).values()
    return all(_may_see(user, name) for name in named if name)


def _pipeline(declared: Project, name: str) -> Shown:
    members = declared.graph.pipeline(name)
    with lent(declared, [table.id for table in members]):
        return declared.pipelines[name], tables(declared, members)


def _may_see(user: Any, dag_id: str) -> bool:
    details = DagDetails(id=dag_id)
    return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=user))


def _may_trigger(user: Any, dag_id: str) -> bool:
    details, runs = DagDetails(id=dag_id), DagAccessEntity.RUN
    manager = get_auth_manager()
    return bool(
        manager.is_authorized_dag(method="POST", access_entity=runs, details=details, user=user)
    )


def _has_run(dag_id: str, run: str) -> bool:
    """Return whether Airflow has the run; runs of commands have ids, too."""
    sought = select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == run)
    with create_session() as session:
        return session.scalar(sought) is not None


def _runs(pipelines: Collection[str]) -> dict[str, str]:
    """Return the state of the task of each table in the last run of its pipeline."""
    found = dict[str, str]()
    with create_session() as session:
        for pipeline in site(airflows_config()).pipelines:
            if pipeline.name not in pipelines:
                continue
            runs = select(DagRun.run_id).where(DagRun.dag_id == pipeline.name)
            last = session.scalar(runs.order_by(DagRun.run_after.desc()).limit(1))
            ended = select(TaskInstance.task_id, TaskInstance.state).where(
                TaskInstance.dag_id == pipeline.name, TaskInstance.run_id == last
            )
            states = dict(session.execute(ended).all())
            for task in pipeline.graph.tasks:
                if state := states.get(task.id):
                    found |= dict.fromkeys(task.tables, str(state))
    return found


def _visit(request: Request, user: Any, declared: Project) -> Visit:
    root, reports = request.scope["root_path"], report_folder(declared).glob("*.html")
    return Visit(
        root,
        airflow=str(Path(root).parent).rstrip("/"),
        environment=declared.environment,
        reports={file.name for file in reports} if _may_see_all(user) else (),
        now=datetime.now(UTC),
        sees=partial(_may_see, user),
        has_run=_has_run,
        may_trigger=partial(_may_trigger, user),
        says=declared.hide,
    )


def _answer(page: Page) -> Response:
    nonce = secrets.token_urlsafe(16)
    headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
    return HTMLResponse(html(page, nonce), headers=headers)
