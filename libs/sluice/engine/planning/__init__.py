"""Planning: the nodes of a table, and the next batch of each as data."""
