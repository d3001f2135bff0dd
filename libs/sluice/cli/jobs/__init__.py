"""Jobs: the steps of runs as processes of their own. A project's `jobs/` may replace any."""
