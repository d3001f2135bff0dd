"""Sluice's plugin for Airflow: a page in the menu, a tab on every DAG, deadlines, data intervals.

Airflow finds it by the package's entry point and reads it in every process. Only the API server
serves the page, so its imports happen there, at the first request.
"""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from sluice.airflow.scheduling import PREFIX, Due, Grid, address

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' "
    "stroke='{ink}' stroke-width='1.8' stroke-linecap='round'%3E"
    "%3Cpath d='M5 4v16M19 4v16M5 9h14M3 20c2-2 4-2 6 0s4 2 6 0 4-2 6 0'/%3E%3C/svg%3E"
)
ICONS = {"icon": ICON.format(ink="%237c93b8"), "icon_dark_mode": ICON.format(ink="%23cfd9ec")}


class PageApp:
    """The page as an ASGI application, created at the first request."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on."""
        from sluice.airflow.page_app import app

        await app(scope, receive, send)


class SluicePlugin(AirflowPlugin):  # type: ignore[misc]
    """Sluice's additions to Airflow."""

    name = "sluice"
    fastapi_apps = [{"app": PageApp(), "url_prefix": PREFIX, "name": "Sluice"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": "Sluice", "href": address("/"), "url_route": "sluice", **ICONS},
        {
            "name": "Sluice",
            "href": address("/pipelines/{DAG_ID}"),
            "url_route": "sluice_pipeline",
            "destination": "dag",
            **ICONS,
        },
    ]
    deadline_references = [Due]  # noqa: RUF012
    timetables = [Grid]  # noqa: RUF012
