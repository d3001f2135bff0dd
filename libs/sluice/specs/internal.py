"""The tables that Sluice keeps beside a declared one: `<table>__state` and the like."""

STATE = "state"  # what its kind must remember beyond the visible rows
DELIVERIES = "deliveries"  # every delivered row, by interval
INTERVALS = "intervals"  # a row per delivery
QUARANTINE = "quarantine"  # delivered rows that could not be used
FACTS = "facts"  # counts of the last batches, for telling unusual ones
ARRIVALS = "arrivals"  # what a stream has read, and when
NOTES = (QUARANTINE, INTERVALS, ARRIVALS, FACTS)  # those without a position
MARK = "__"


def internal(name: str, suffix: str) -> str:
    """The name or id of the table that is kept beside that one."""
    return f"{name}{MARK}{suffix}"


def declared(name: str) -> str:
    """The name or id of the declared table that one is kept beside, or is."""
    return name.partition(MARK)[0]
