"""Interpreter of Spark's plans for few rows: the same DataFrames, computed in this process.

PySpark's own client builds plans of Spark Connect's protocol. `local_session` passes them to its
`Service`, which computes them here instead of sending them to a server. No JVM runs and nothing
listens.

It computes only what certainly equals Spark's result. Everything else raises `UnsupportedLocally`
before any result: an unknown function, a rare type, and also every error in a value. The caller
then uses Spark, whose result or error counts.
"""
