"""Facts joined to dimensions."""
