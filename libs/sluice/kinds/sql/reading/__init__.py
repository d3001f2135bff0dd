"""Query as written: its tree, and small steps on trees."""
