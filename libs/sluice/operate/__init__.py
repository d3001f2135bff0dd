"""Work on a whole project: run, rebuild, verify, maintain, replay, doctor."""
