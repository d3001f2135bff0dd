"""What is left of a configuration when one of its files has mistakes."""

from pathlib import Path

import pytest

from sluice.declare.project import load_sound
from sluice.errors import ConfigError

GOOD = """pipeline: {0}
schedule: "@daily"
start_date: 2024-01-01
sources:
  events: {{path: events/, time: at, format: json, schema: "id INT, at TIMESTAMP"}}
"""
BROKEN = GOOD.format("bad") + "  others: {path: others/, formt: json}\n"
READER = """pipeline: reader
schedule: assets
views:
  latest: {kind: topk, from: bad.events, order_by: [at desc], limit: 3}
"""


def write(tmp_path: Path, settings: str = "", **pipelines: str) -> Path:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "sluice.yaml").write_text(settings, "utf-8")
    for name, text in pipelines.items():
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(text, "utf-8")
    return tmp_path


def test_a_configuration_without_mistakes_is_whole(tmp_path: Path) -> None:
    project, error = load_sound(write(tmp_path, a=GOOD.format("a"), b=GOOD.format("b")))
    assert set(project.pipelines) == {"a", "b"}
    assert error is None


def test_a_pipeline_with_mistakes_is_left_out_and_they_are_reported(tmp_path: Path) -> None:
    project, error = load_sound(write(tmp_path, a=GOOD.format("a"), bad=BROKEN))
    assert set(project.pipelines) == {"a"}
    assert error is not None
    assert any("bad.yaml:6: " in mistake and "formt" in mistake for mistake in error.mistakes)


def test_a_pipeline_that_reads_from_it_goes_with_it(tmp_path: Path) -> None:
    project, error = load_sound(write(tmp_path, a=GOOD.format("a"), bad=BROKEN, reader=READER))
    assert set(project.pipelines) == {"a"}
    assert error is not None
    assert not any("reader.yaml" in mistake for mistake in error.mistakes)
    assert error.hint.endswith("left out: bad.yaml, reader.yaml")


def test_a_mistake_in_the_projects_own_file_is_everyones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sluice\.yaml:1: .*'lakee'"):
        load_sound(write(tmp_path, "lakee: x", a=GOOD.format("a")))


def test_if_no_pipeline_is_left_the_mistakes_are_raised(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bad\.yaml:6: "):
        load_sound(write(tmp_path, bad=BROKEN))
