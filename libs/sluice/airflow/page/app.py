"""Routes of the page, all behind Airflow's login.

A pipeline is shown to those who may see its DAG. Tables are read without Spark, at their current
versions; nothing is changed here.
"""

import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.status import HTTP_404_NOT_FOUND, HTTP_500_INTERNAL_SERVER_ERROR

from sluice.airflow.connections import lent
from sluice.airflow.page import why
from sluice.airflow.page.contents import tables
from sluice.airflow.page.overview import Shown, overview, stranger
from sluice.airflow.page.table_page import table
from sluice.airflow.page.visit import Visit
from sluice.airflow.projects import airflows_config, mistakes, project
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.errors import SluiceError
from sluice.pages.elements import Page
from sluice.pages.html import html
from sluice.report.publish import report_folder
from sluice.report.quality_pages import INDEX

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{nonce}'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
REPORT_FILE = re.compile(r"[\w.-]+\.html")
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
    declared, wrong = _project(), mistakes(airflows_config())
    shown = [_pipeline(declared, name) for name in declared.pipelines if _may_see(user, name)]
    return _answer(overview(_visit(request, declared), shown, str(wrong or "")))


@app.get("/pipelines/{name}")
def one_pipeline(request: Request, user: User, name: str) -> Response:
    """Show one pipeline: the tab of its DAG."""
    declared = _project()
    visit = _visit(request, declared)
    if name not in declared.pipelines or not _may_see(user, name):
        return _answer(stranger(visit, name))
    return _answer(overview(visit, [_pipeline(declared, name)]))


@app.get("/tables/{name}")
def one_table(request: Request, user: User, name: str) -> Response:
    """Show one table: what its kind shows of its rows, its newest batches and its expectations."""
    declared = _project()
    found = _table(declared, user, name)
    with lent(declared, [found.id]):
        return _answer(table(_visit(request, declared), declared, found))


@app.get("/tables/{name}/why")
def one_row(request: Request, user: User, name: str) -> Response:
    """Show why one row is as it is: the commit that last changed it, and where it comes from."""
    declared = _project()
    found, named = _table(declared, user, name), why.options(request.query_params.multi_items())
    answer = why.why(declared, airflows_config(), found.id, named)
    return _answer(why.page(_visit(request, declared), found, answer))


@app.get("/report/{file}")
def report(user: User, file: str) -> Response:
    """Return a file of the quality report, which is about all pipelines."""
    declared = _project()
    folder = report_folder(declared)
    is_whole = all(_may_see(user, name) for name in declared.pipelines)
    if not is_whole or not REPORT_FILE.fullmatch(file) or not (folder / file).is_file():
        raise HTTPException(HTTP_404_NOT_FOUND, "there is no such report yet")
    return FileResponse(folder / file, media_type="text/html")


def _table(declared: Project, user: Any, name: str) -> Table:
    """Return a table that the user may see."""
    found = declared.graph.tables.get(name)
    if not found or not found.is_stored or not _may_see(user, found.pipeline):
        raise HTTPException(HTTP_404_NOT_FOUND, f"there is no table {name}")
    return found


def _project() -> Project:
    return project(airflows_config())


def _pipeline(declared: Project, name: str) -> Shown:
    members = declared.graph.pipeline(name)
    with lent(declared, [table.id for table in members]):
        return declared.pipelines[name], tables(declared, members)


def _may_see(user: Any, dag_id: str) -> bool:
    details = DagDetails(id=dag_id)
    return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=user))


def _visit(request: Request, declared: Project) -> Visit:
    root, has_report = request.scope["root_path"], (report_folder(declared) / INDEX).is_file()
    airflow = str(Path(root).parent).rstrip("/")
    return Visit(root, airflow, declared.environment, has_report, datetime.now(UTC))


def _answer(page: Page) -> Response:
    nonce = secrets.token_urlsafe(16)
    headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
    return HTMLResponse(html(page, nonce), headers=headers)
