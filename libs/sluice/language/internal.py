"""Names of internal tables, such as `<table>__state`, and of Sluice's folder."""

STATE = "state"  # state of a kind beyond the visible rows
DELIVERIES = "deliveries"  # every delivered row, by interval
INTERVALS = "intervals"  # one row per delivery
QUARANTINE = "quarantine"  # delivered rows that could not be used
ARRIVALS = "arrivals"  # what a stream has read, and when
FORGOTTEN = "forgotten"  # subjects whose rows are withheld, as salted hashes
FORGETTING = "forgetting"  # subjects of an erasure that has not ended, in files
NOTES = (QUARANTINE, INTERVALS, ARRIVALS, FORGOTTEN)  # tables without a position
MARK = "__"
REBUILT = "__rebuild"  # folder of a lake in which sources are read again
QUALITY = "__quality"  # folder of a lake with results, reports and counts
ENVIRONMENTS = "__env"  # folder of a lake with the lakes of its environments
DROPPED = "__dropped"  # folder of a lake with tables that may still be brought back
PREVIEWS = "__preview"  # folder of a lake with the overlays of previews
STORE = "__store"  # folder of a lake with what was found out about its store


def internal(name: str, suffix: str) -> str:
    """Return the name or id of an internal table of that one."""
    return f"{name}{MARK}{suffix}"


def renamed(name: str, old: str, new: str) -> str:
    """Return the name or id of a table, or of its internal table, after `old` became `new`."""
    return new + name[len(old) :] if declared(name) == old else name


def declared(name: str) -> str:
    """Return the name or id of the declared table that this one is or belongs to."""
    return name.partition(MARK)[0]
