"""Whether a table is still set up as Sluice made it: with a feed, for all of its readers.

Who writes a table with Spark may switch on what some of its readers can't read, or off what its
consumers need. What is found is told before the next batch meets it.
"""

from collections.abc import Iterator, Mapping

from deltalake import DeltaTable

from sluice.storage.lake import moved_away

Fault = tuple[str, str]  # what is wrong, and what to do
SETTINGS: Mapping[str, tuple[str, str]] = {  # what Delta takes for false where it is not set
    "delta.enableChangeDataFeed": ("false", "views over it can't read what changed"),
    "delta.appendOnly": ("true", "no row of it can be corrected"),
}
FEATURES: Mapping[str, str] = {
    "deletionVectors": "readers without Spark don't see its deletes",
    "columnMapping": "readers without Spark read nulls in silence",
}
MAPPING = "delta.columnMapping.mode"


def faults(table: DeltaTable, uri: str) -> Iterator[Fault]:
    """What of a table's settings and features is in the way of batches and readers."""
    settings = table.metadata().configuration
    for name, (wrong, why) in SETTINGS.items():
        if settings.get(name, "false").lower() == wrong:
            good = "true" if wrong == "false" else "false"
            yield f"{name} is {wrong}: {why}", set_to(uri, name, good)
    features = set(table.protocol().reader_features or ())
    if settings.get(MAPPING, "none").lower() != "none":
        features.add("columnMapping")
    for name in FEATURES.keys() & features:
        repair = f"{moved_away(uri)}: Delta does not take such a feature back"
        yield f"{name} was switched on: {FEATURES[name]}", repair


def set_to(uri: str, name: str, value: str) -> str:
    """The statement that sets a property."""
    return f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('{name}' = '{value}')"
