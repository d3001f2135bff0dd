"""Secrets come from the environment and are not written down."""

from pathlib import Path

import pytest

from sluice.declare.project import load
from sluice.errors import ConfigError

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
dimensions:
  things: {{format: jdbc, schema: "id INT", key: [id], options: {{dbtable: things, {options}}}}}
"""


def declared(folder: Path, options: str) -> str:
    """What is said of these options; nothing if they are taken."""
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "shop.yaml").write_text(PIPELINE.format(options=options))
    try:
        load(folder, environ={"SECRET": "x"})
    except ConfigError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    "options",
    [
        "password: hunter2",
        "'oauth.clientSecret': hunter2",
        "url: 'jdbc:postgresql://db/shop?user=app&password=hunter2'",
        "url: 'jdbc:postgresql://app:hunter2@db/shop'",
        "url: 'jdbc:postgresql://db/shop?user=${SECRET}&password=hunter2'",
        "url: 'jdbc:postgresql://${SECRET}:hunter2@db/shop'",
        "password: '${NOWHERE:-hunter2}'",
        "password: '${SECRET}hunter2'",
        "kafka.sasl.jaas.config: 'hunter2 required password=${SECRET}'",
    ],
)
def test_a_secret_in_a_file_is_refused_and_not_repeated(tmp_path: Path, options: str) -> None:
    said = declared(tmp_path, options)
    assert "shop.yaml:6" in said
    assert "write ${VARIABLE}" in said
    assert "hunter2" not in said


def test_a_secret_from_the_environment_is_taken(tmp_path: Path) -> None:
    assert not declared(tmp_path, "password: '${SECRET}', url: 'jdbc:x://db?user=${SECRET}'")
    assert not declared(
        tmp_path / "2", "password: '${SECRET:-}', url: 'jdbc:x://${SECRET}:${SECRET}@db'"
    )
