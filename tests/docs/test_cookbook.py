"""Each recipe of the cookbook is declared in one project, run, and read."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.trips import Project

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
BLOCK = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPE = re.compile(
    r"^```yaml\n(views:\n  (\w+):.*?)^```\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_what_the_page_shows_is_what_each_recipe_gives(
    tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    page = PAGE.read_text("utf-8")
    (_, files), (_, pipeline), *parts = BLOCK.findall(page)
    recipes = RECIPE.findall(page)
    assert len(recipes) == len(parts)
    subprocess.run(["bash", "-euc", files], cwd=tmp_path, check=True)
    views = (declared.removeprefix("views:\n") for declared, _, _ in recipes)
    declared = "".join((pipeline, "views:\n", *views))
    (tmp_path / "config/pipelines/shop.yaml").write_text(declared, "utf-8")
    shop = Project(tmp_path, remote)
    assert shop.sluice("run", "shop").code == 0
    for _, view, shown in recipes:
        given = shop.sluice("read", view)
        assert sorted(given.out.splitlines()) == sorted(shown.splitlines()), given.err
    assert shop.sluice("verify").code == 0
