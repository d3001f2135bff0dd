"""Hidden columns that stored tables keep of their rows: readers don't see them."""

INTERVAL = "_sluice_interval"  # start of the interval that delivered a row; in quarantine, too
ID = "_sluice_id"  # identity of a delivered row within its interval
BATCH = "_sluice_batch"  # number of the batch that looked a row's values up
CARRIED = "_sluice_key_"  # prefix of a view's columns that are an input's key
HIDDEN_TYPES = {INTERVAL: "TIMESTAMP", ID: "STRING", BATCH: "BIGINT"}
