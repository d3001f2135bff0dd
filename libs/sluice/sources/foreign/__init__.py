"""Sources that follow a Delta table which somebody else writes."""
