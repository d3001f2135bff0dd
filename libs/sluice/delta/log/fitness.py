"""Check that a table is still set up as Sluice made it: with a feed, readable by all readers.

Other writers with Spark may enable features that some readers of a table can't read. They may also
disable features that its consumers need. Faults are reported before the next batch.
"""

from collections.abc import Iterator, Mapping

from deltalake import DeltaTable

from sluice.delta.places.lake_layout import moved_away

FaultAndRepair = tuple[str, str]  # the fault, and its repair
SETTINGS: Mapping[str, tuple[str, str]] = {  # Delta treats an unset one as false
    "delta.enableChangeDataFeed": ("false", "views over it can't read what changed"),
    "delta.appendOnly": ("true", "no row of it can be corrected"),
}
FEATURES: Mapping[str, str] = {
    "columnMapping": "readers without Spark silently read nulls",
}
MAPPING = "delta.columnMapping.mode"


def faults(table: DeltaTable, uri: str) -> Iterator[FaultAndRepair]:
    """Yield the settings and features of a table that obstruct batches or readers."""
    settings = table.metadata().configuration
    for name, (wrong, why) in SETTINGS.items():
        if settings.get(name, "false").lower() == wrong:
            good = "true" if wrong == "false" else "false"
            yield f"{name} is {wrong}: {why}", set_to(uri, name, good)
    features = set(table.protocol().reader_features or ())
    if settings.get(MAPPING, "none").lower() != "none":
        features.add("columnMapping")
    for name in FEATURES.keys() & features:
        repair = f"{moved_away(uri)}: Delta can't remove such a feature"
        yield f"{name} was switched on: {FEATURES[name]}", repair


def set_to(uri: str, name: str, value: str) -> str:
    """Return the statement that sets a property."""
    return f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('{name}' = '{value}')"
