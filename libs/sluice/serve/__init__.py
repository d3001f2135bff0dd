"""The tables over HTTP: reads of a lake for applications and people, without Spark."""
