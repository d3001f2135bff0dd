"""Dimension views: dimensions joined to dimensions, resolved when they are read."""
