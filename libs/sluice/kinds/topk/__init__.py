"""First rows of each group, by an order."""
