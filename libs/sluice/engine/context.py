"""Values that all batches of one project share: its lake, its tables, its limits."""

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.declare.project import Project
from sluice.declare.settings import SparkSettings
from sluice.declare.table import Graph
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.limits import Limits


@dataclass(frozen=True)
class Context:
    """Shared values, resolved once where a command or a job begins.

    `timezones`: those in which messages show the intervals of each pipeline.
    """

    lake: LakeLayout
    graph: Graph
    settings: SparkSettings
    limits: Limits
    timezones: Mapping[str, str]

    @classmethod
    def of(cls, project: Project) -> "Context":
        """Return the context of a loaded project."""
        zones = {pipeline.name: pipeline.timezone for pipeline in project.pipelines.values()}
        return cls(layout(project), project.graph, project.spark, project.limits, zones)
