"""What the user declares: frozen models, loaded from YAML with every mistake reported at its line.

`load(config)` gives a `Project`; its `graph` knows every table's columns, key and inputs.
"""

from sluice.specs.definition import definition
from sluice.specs.graph import Graph, Table, UnknownTable
from sluice.specs.project import Pipeline, Project, load

__all__ = ["Graph", "Pipeline", "Project", "Table", "UnknownTable", "definition", "load"]
