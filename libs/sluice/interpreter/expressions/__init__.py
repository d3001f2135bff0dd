"""Expressions: read from the protocol and from SQL into one tree, then compiled to functions."""
