"""Address of the delivered data: a landing folder, a foreign table, or a topic."""

import re

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.sources.kafka.client.connection import client_settings
from sluice.sources.spec import Source


def address(project: Project, table: Table) -> str:
    """Return the origin of a table's rows outside the lake; nothing for a view.

    Raises UsageError if the environment lacks a topic's connection.
    """
    spec = table.spec
    if isinstance(spec, Source) and spec.kafka:
        settings = client_settings(spec.kafka.connection, table.id)
        return f"kafka://{settings['bootstrap.servers'].split(',')[0]}/{spec.kafka.topic}"
    path = spec.delta.path if isinstance(spec, Source) and spec.delta else ""
    path = path or getattr(spec, "path", "")
    return project.resolve(re.split(r"[{*]", path)[0]) if path else ""
