"""Values that all batches of one project share: its lake, its tables, its limits."""

from dataclasses import dataclass

from sluice.declare.graph import Graph
from sluice.declare.project import Project
from sluice.declare.settings import SparkSettings
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.limits import Limits


@dataclass(frozen=True)
class Context:
    """Shared values, resolved once where a command or a job begins."""

    lake: LakeLayout
    graph: Graph
    settings: SparkSettings
    limits: Limits

    @classmethod
    def of(cls, project: Project) -> "Context":
        """Return the context of a loaded project."""
        return cls(layout(project), project.graph, project.spark, project.limits)
