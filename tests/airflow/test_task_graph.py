"""A pipeline as tasks: what runs, and after what."""

from sluice.airflow.blueprint import TaskGraph, TaskKind, task_graph
from sluice.declare.project import load

from .conftest import Configured

CONNECT = "spark: {engine: connect}"


def graph_of(configured: Configured, settings: str, pipeline: str = "shop") -> TaskGraph:
    project = load(configured(settings))
    return task_graph(project, project.pipelines[pipeline])


def edges(graph: TaskGraph) -> dict[str, set[str]]:
    return {task.id: set(task.upstream) for task in graph.tasks}


def test_every_stored_table_has_a_task_after_those_of_its_inputs(configured: Configured) -> None:
    assert edges(graph_of(configured, CONNECT)) == {
        "ingest.sales": set(),
        "load.items": set(),
        "load.makers": set(),
        "advance.lines": {"ingest.sales", "load.items", "load.makers"},
        "advance.sums": {"advance.lines"},
        "advance.best": {"advance.sums"},
        "quality": {"advance.best"},
    }


def test_a_task_comes_after_those_that_it_follows(configured: Configured) -> None:
    seen: set[str] = set()
    for task in graph_of(configured, CONNECT).tasks:
        assert seen.issuperset(task.upstream)
        seen.add(task.id)


def test_inputs_of_another_pipeline_are_triggers(configured: Configured) -> None:
    graph = graph_of(configured, CONNECT, "news")
    assert edges(graph) == {"advance.worst": set(), "quality": {"advance.worst"}}
    assert graph.triggers == ("shop.sums",)


def test_where_a_task_is_an_application_a_pipeline_is_two(configured: Configured) -> None:
    graph = graph_of(configured, "spark: {engine: submit}")
    assert edges(graph) == {"ingest": set(), "advance": {"ingest"}, "quality": {"advance"}}
    ingest, advance, _ = graph.tasks
    assert set(ingest.tables) == {"shop.sales", "shop.items", "shop.makers"}
    assert advance.tables == ("shop.lines", "shop.sums", "shop.best")


def test_a_pipeline_of_views_alone_has_no_ingest(configured: Configured) -> None:
    graph = graph_of(configured, "airflow: {tasks: pipeline}", "news")
    assert edges(graph) == {"advance": set(), "quality": {"advance"}}


def test_the_setting_wins_over_the_engine(configured: Configured) -> None:
    by_table = graph_of(configured, "{spark: {engine: submit}, airflow: {tasks: table}}")
    assert sum(task.kind is TaskKind.ADVANCE for task in by_table.tasks) == 3
    halves = graph_of(configured, "{spark: {engine: connect}, airflow: {tasks: pipeline}}")
    assert [task.id for task in halves.tasks] == ["ingest", "advance", "quality"]
