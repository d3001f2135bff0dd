"""Routes of the page, all behind Airflow's login.

A pipeline is shown to those who may see its DAG. Tables are read without Spark, at their current
versions; nothing is changed here.
"""

import re
import secrets
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.status import HTTP_404_NOT_FOUND, HTTP_500_INTERNAL_SERVER_ERROR

from sluice.airflow.connections import lent
from sluice.airflow.page.contents import ShownPipeline, pipeline, table
from sluice.airflow.page.rendering import render
from sluice.airflow.page.why import options, why
from sluice.airflow.projects import airflows_config, mistakes, project
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.errors import SluiceError
from sluice.report.publish import report_folder

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
def overview(request: Request, user: User) -> Response:
    """Show every pipeline that the user may see, with the state of its tables."""
    declared, wrong = _project(), mistakes(airflows_config())
    shown = [_pipeline(declared, name) for name in declared.pipelines if _may_see(user, name)]
    return _page(request, "overview", pipelines=shown, mistakes=str(wrong or ""))


@app.get("/pipelines/{name}")
def one_pipeline(request: Request, user: User, name: str) -> Response:
    """Show one pipeline: the tab of its DAG."""
    declared = _project()
    if name not in declared.pipelines or not _may_see(user, name):
        return _page(request, "stranger", name=name)
    return _page(request, "overview", pipelines=[_pipeline(declared, name)], mistakes="")


@app.get("/tables/{name}")
def one_table(request: Request, user: User, name: str) -> Response:
    """Show one table: its newest batches, leaders or windows, and its expectations."""
    declared = _project()
    found = _table(declared, user, name)
    with lent(declared, [found.id]):
        contents = table(declared, found)
    return _page(request, "table", table=contents)


@app.get("/tables/{name}/why")
def one_row(
    request: Request,
    user: User,
    name: str,
    key: Annotated[list[str], Query()] = [],  # noqa: B006 FastAPI copies it
    partition: Annotated[list[str], Query()] = [],  # noqa: B006
    rank: int | None = None,
    time: str | None = None,
) -> Response:
    """Show why one row is as it is: the commit that last changed it, and where it comes from."""
    declared = _project()
    found, named = _table(declared, user, name), options(key, partition, rank, time)
    told = why(declared, airflows_config(), found.id, named)
    return _page(request, "why", table=found, why=told)


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


def _pipeline(declared: Project, name: str) -> ShownPipeline:
    with lent(declared, [table.id for table in declared.graph.pipeline(name)]):
        return pipeline(declared, declared.pipelines[name])


def _may_see(user: Any, dag_id: str) -> bool:
    details = DagDetails(id=dag_id)
    return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=user))


def _page(request: Request, template: str, **shown: Any) -> Response:
    nonce, root = secrets.token_urlsafe(16), request.scope["root_path"]
    declared = _project()
    has_report = (report_folder(declared) / "index.html").is_file()
    shown |= {"has_report": has_report, "environment": declared.environment}
    airflow = str(Path(root).parent).rstrip("/")
    html = render(template, root=root, airflow=airflow, nonce=nonce, **shown)
    headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
    return HTMLResponse(html, headers=headers)
