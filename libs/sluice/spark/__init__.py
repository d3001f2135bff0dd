"""Spark itself: its Java, its jars, its session, its paths."""
