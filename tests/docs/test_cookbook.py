"""Each recipe of the cookbook is declared in one project, run, and read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
BLOCK = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPE = re.compile(
    r"^```yaml\n(views:\n  (\w+):.*?)^```\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
def test_what_the_page_shows_is_what_each_recipe_gives(tmp_path: Path, remote: str) -> None:
    page = PAGE.read_text("utf-8")
    (_, files), (_, pipeline), *parts = BLOCK.findall(page)
    recipes = RECIPE.findall(page)
    assert len(recipes) == len(parts)
    _run(["bash", "-euc", files], tmp_path, remote)
    views = (declared.removeprefix("views:\n") for declared, _, _ in recipes)
    declared = "".join((pipeline, "views:\n", *views))
    (tmp_path / "config/pipelines/shop.yaml").write_text(declared, "utf-8")
    _run(["sluice", "run", "shop"], tmp_path, remote)
    for _, view, shown in recipes:
        given = _run(["sluice", "read", view], tmp_path, remote)
        assert sorted(given.splitlines()) == sorted(shown.splitlines())
    _run(["sluice", "verify"], tmp_path, remote)


def _run(command: list[str], folder: Path, remote: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path, "SPARK_REMOTE": remote, "COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
