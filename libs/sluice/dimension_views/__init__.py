"""Dimension views: dimensions joined to dimensions, resolved when read."""
