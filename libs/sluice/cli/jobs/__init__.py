"""Jobs: the steps of runs as separate processes. A project's `jobs/` may replace any."""
