"""Reports on a lake after a run: the quality report, from the kept results and the tables."""
