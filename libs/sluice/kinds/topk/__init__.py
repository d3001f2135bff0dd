"""The first rows of each group, by an order."""
