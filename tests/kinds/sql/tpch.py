"""The queries of TPC-H."""

from pathlib import Path

from tests.kinds.sql.shop import written

QUERIES = written(Path(__file__).parent / "tpch.sql")
