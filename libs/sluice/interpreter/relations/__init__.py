"""Relations: plans read from the protocol, and the rows of joins, groups, orders and windows."""
