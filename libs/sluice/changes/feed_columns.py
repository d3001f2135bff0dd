"""Delta's change feed: the columns that it adds, and which of its rows were added or removed."""

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
OF_FEED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)  # none of the table's own
COMES = ("insert", "update_postimage")
GOES = ("delete", "update_preimage")
