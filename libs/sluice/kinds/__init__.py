"""Kinds of views: a folder each, of modules that have the same names."""
