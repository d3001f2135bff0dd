"""Lag of a source behind its topic, as its brokers report it."""

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.errors import SluiceError
from sluice.sources.kafka.broker import Brokers
from sluice.sources.kafka.messages import Read
from sluice.sources.kafka.place import Place


def lag(project: Project, table: Table) -> dict[int, int]:
    """Return the messages of each partition that were not read yet, at most.

    Raises HistoryLost if they can't be read from the recorded place on.
    """
    source = Read.of(project, table)
    place = Place.of(head(source.uri))
    found = Brokers.of(table.id, source.topic).describe()
    if place:
        place.check(found, table.id)
    place = place or Place.beginning(found, latest=source.topic.start == "latest")
    return place.with_new_partitions(found).lag(found)


def shown(project: Project, table: Table) -> str:
    """Return a line on the lag, or on why it is not known."""
    try:
        behind = {p: count for p, count in lag(project, table).items() if count}
    except SluiceError as error:
        return f"lag: {table.id} is not known: {error.message.removeprefix(f'{table.id}: ')}"
    each = ", ".join(f"partition {p} by {count:,}" for p, count in sorted(behind.items()))
    return f"lag: {table.id} is {f'behind, {each} messages' if each else 'up to date'}"
