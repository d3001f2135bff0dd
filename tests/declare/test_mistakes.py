# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in pipelines and the project, and the line that each gets."""

import re

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, each


@each(
    "text, told",
    ("pipeline: p\nschedule: sometimes\nstart_date: 2017-01-01\n", "2: schedule: … sometimes"),
    ('pipeline: p\nschedule: "@daily"\n', "1: … start_date"),
    (
        'pipeline: p\nschedule: "@daily"\nstart_date: soon\n',
        "3: start_date: … soon … 2017-01-31",
    ),
    (
        'pipeline: p\nschedule: "@daily"\nstart_date: 2017-13-45\n',
        "3: start_date: … 2017-13-45 … 2017-01-31",
    ),
    ('pipeline: p\nschedule: "@daily"\nstart_date:\n', "3: start_date: … start_date"),
    ("pipeline: p\nschedule:\n", "2: schedule:"),
    ("pipeline: p\nschedule: 5\n", "2: schedule: … 5"),
    ("pipeline: p\nschedule: assets\nviews:\n  v: {kind: topk}\n  v: {kind: topk}\n", "5: … v"),
    ("schedule: assets\n", "1: … pipeline"),
    ("pipeline: my__shop\nschedule: assets\n", "1: pipeline: … my__shop … __"),
    (
        "pipeline: p\nschedule: assets\nstart_date: 2017-01-02\nend_date: 2017-01-02\n",
        "4: end_date: … end_date … start_date",
    ),
    ("pipeline: p\nschedule: assets\ntimezone: Mars\n", "3: timezone: … Mars"),
    (
        "pipeline: p\nschedule: assets\nairflow: {tasks: one}\n",
        "3: airflow.tasks: … one … auto, table, pipeline",
    ),
    (
        "pipeline: p\nschedule: assets\nveiws: {}\n",
        "3: veiws: … veiws … pipeline, description, schedule",
    ),
    ("pipeline: p\nschedule: assets\nviews: [a]\n", "3: views:"),
    (
        'pipeline: p\nschedule: assets\nsources:\n  x: {path: "x/{interval_start:%Y}", schema: id INT}\n',
        "4: sources.x: … assets",
    ),
    ("pipeline: [p\nschedule: assets\n", "2: … YAML … ] … {...}"),
)
def test_a_pipeline(wrong: Mistakes, wording: Wording, text: str, told: str) -> None:
    wording(wrong({"pipelines/p.yaml": text}), f"pipelines/p.yaml:{told}")


@each(
    "text, told",
    ("lak: x\n", "1: lak: … lak … lake … lake, lake_connection, spark"),
    ("spark: {engine: local}\n", "1: spark.engine: … local … submit, connect"),
    ("lake: a\nlake: b\n", "2: … lake"),
    ("lake: ${NOWHERE}\n", "1: lake: … NOWHERE … {NOWHERE:-default}"),
    ("spark: 3\n", "1: spark: … 3"),
)
def test_the_project(wrong: Mistakes, wording: Wording, text: str, told: str) -> None:
    files = {"sluice.yaml": text, "pipelines/p.yaml": "pipeline: p\nschedule: assets\n"}
    wording(wrong(files), f"sluice.yaml:{told}")


def test_all_mistakes_of_all_files_are_reported_at_once_in_their_order(wrong: Mistakes) -> None:
    files = {
        "sluice.yaml": "lak: x\n",
        "pipelines/a.yaml": "pipeline: a\nschedule: never\nviews:\n  x: {kind: nothing}\n",
        "pipelines/b.yaml": "pipeline: [b\n",
    }
    found = [re.sub(r"(:\d+:).*", r"\1", mistake) for mistake in wrong(files)]
    assert found == [
        "pipelines/a.yaml:2:",
        "pipelines/a.yaml:4:",
        "pipelines/b.yaml:2:",
        "sluice.yaml:1:",
    ]


def test_a_folder_that_is_not_there_is_named(wrong: Mistakes) -> None:
    assert wrong({}) == ["pipelines: there is no pipeline file (*.yaml)"]


def test_bounds_off_the_schedule_are_refused_with_the_nearest_local_ones(wrong: Mistakes) -> None:
    text = """\
pipeline: p
schedule: "@weekly"
timezone: Asia/Kolkata
start_date: 2024-01-01
end_date: 2024-02-04T00:00Z
"""
    nearest = "is not a bound of the schedule '@weekly' (Asia/Kolkata); the nearest are"
    assert wrong({"pipelines/p.yaml": text}) == [
        (
            f"pipelines/p.yaml:4: start_date: 2024-01-01T00:00:00+05:30 {nearest} "
            "2023-12-31T00:00:00+05:30 and 2024-01-07T00:00:00+05:30"
        ),
        (
            f"pipelines/p.yaml:5: end_date: 2024-02-04T05:30:00+05:30 {nearest} "
            "2024-02-04T00:00:00+05:30 and 2024-02-11T00:00:00+05:30"
        ),
    ]


def test_dates_at_the_end_of_the_calendar_are_refused_in_a_sentence(wrong: Mistakes) -> None:
    text = 'pipeline: p\nschedule: "@daily"\nstart_date: 0001-01-01\nend_date: 9999-12-31\n'
    said = wrong({"pipelines/p.yaml": text})
    assert [m[: len("pipelines/p.yaml:3: start_date: 0001-01-01 is")] for m in said] == [
        "pipelines/p.yaml:3: start_date: 0001-01-01 is",
        "pipelines/p.yaml:4: end_date: 9999-12-31 is a",
    ]
