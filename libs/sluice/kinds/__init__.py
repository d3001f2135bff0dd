"""Kinds of views: a folder each, with modules of the same names."""
