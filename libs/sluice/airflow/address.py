"""Addresses of Sluice's pages in Airflow's UI, which may itself be below a path of its host."""

from urllib.parse import urlsplit

from airflow.configuration import conf

PREFIX = "/sluice"


def address(page: str) -> str:
    """Return the absolute path of a page, for a link."""
    root = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{root}{PREFIX}{page}"
