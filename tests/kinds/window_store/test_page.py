"""A window store's newest rows on Airflow's page."""

import re
from pathlib import Path

from tests.kinds.window_store.tables import visits
from tests.read.tables import day, position, project_at, write_table

from sluice.kinds.window_store.reader import NEWEST, chapters
from sluice.read.lake import Lake


def test_the_newest_rows_come_first(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    write_table(project, "visits", visits([*range(1, 20)]), position(1, horizon=day(20)))
    (chapter,) = chapters(Lake(project), project.graph.table("visits"), lambda _: "")
    starts = re.findall(r"2017-01-\d\d", repr(chapter))
    assert starts == [f"2017-01-{19 - nth:02}" for nth in range(NEWEST)]
