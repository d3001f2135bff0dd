"""Delivered files as rows of the declared columns, each bad row with its reason."""
