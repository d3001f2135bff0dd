"""Reads over HTTP on loopback, beside DuckDB over the same files behind the same server.

python -m tests.benchmarks.serving [--rows 1000000] [--tops 100000] [--requests 300] [--folder F]

A window store and a top-k are written as upkeep leaves them. A server process answers; another one
asks, over connections that it keeps. Times include the client's, which takes as much CPU as the
server; `wrk`, where it is installed, takes little. The lake is kept and used again.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_lake import declared, position

import sluice
from sluice.declare.project import Project
from sluice.delta.places.lake_layout import layout

TABLES = """
sources:
  events:
    path: landing/
    format: parquet
    schema: "service INT, at TIMESTAMP, trace STRING, duration INT, bytes BIGINT"
    time: at
    key: [trace]
views:
  traces: {kind: window_store, from: events, key: [service], time: at, retention: 400 days}
  best: {kind: topk, from: events, partition_by: [service], order_by: ["bytes desc"], limit: 10}
"""
KEYS, DAYS, DAY = 10_000, 30, 86_400_000_000
FEW = 10  # questions to DuckDB, which takes long
FILE, GROUP = 100_000, 5_000  # rows, as upkeep leaves them
START = np.datetime64("2024-01-01", "us")


def fill(project: Project, rows: int, tops: int) -> None:
    """Write both tables, file by file, in key order."""
    chance = np.random.default_rng(1)
    for day in range(DAYS):
        count = rows // DAYS
        service = np.sort(np.minimum(chance.zipf(1.3, count), KEYS)).astype("int32")
        at = START + (day * DAY + chance.permutation(count) * (DAY // count)).astype("m8[us]")
        table = _columns(chance, service, at, "window_start").sort_by(
            [("service", "ascending"), ("window_start", "ascending")]
        )
        _write(project, "traces", table)
    for first in range(0, tops, FILE):
        count = min(FILE, tops - first)
        rank = np.arange(first, first + count)
        table = _columns(chance, (rank // 10).astype("int32"), START + rank, "at")
        _write(project, "best", table.append_column("rank", pa.array(rank % 10 + 1, pa.int32())))


def _columns(chance: Any, service: Any, at: Any, time_: str) -> pa.Table:
    count = len(service)
    text = chance.bytes(8 * count).hex()
    trace = pa.array([text[i : i + 16] for i in range(0, 16 * count, 16)])
    duration, size = chance.integers(0, 9_999, count, "int32"), chance.integers(0, 1 << 40, count)
    when = pa.array(at, pa.timestamp("us", "UTC"))
    return pa.table(
        {"service": service, time_: when, "trace": trace, "duration": duration, "bytes": size}
    )


def _write(project: Project, name: str, table: pa.Table) -> None:
    write_deltalake(
        layout(project).uri(f"bench.{name}"),
        table,
        mode="append",
        configuration={"delta.enableChangeDataFeed": "true"},
        writer_properties=WriterProperties(max_row_group_size=GROUP, compression="ZSTD"),
        target_file_size=1 << 30,
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position(1).to_json()}),
    )


def serve(folder: Path) -> None:
    """Serve the lake, and the same questions by DuckDB, on a free port, which is printed."""
    import duckdb
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from sluice.serve.answers import to_json
    from sluice.serve.app import Listener, Served, Server

    server = Server(Served(folder / "config"))
    files = str(folder / "lake" / "bench" / "traces" / "*.parquet")
    connection = duckdb.connect(config={"threads": 2, "enable_object_cache": True})
    connection.execute(f"CREATE VIEW traces AS SELECT * FROM read_parquet('{files}')")
    newest = "SELECT * FROM traces WHERE service = ? ORDER BY window_start DESC LIMIT 10"
    one = "SELECT * FROM traces WHERE service = ? AND window_start = ?::TIMESTAMPTZ"

    async def duck(request: Request) -> Response:
        given = list(request.query_params.values())

        def ask() -> bytes:
            found = connection.cursor().execute(one if len(given) > 1 else newest, given)
            return to_json({"rows": found.to_arrow_table().to_pylist()})

        return Response(await server._work(ask), media_type="application/json")

    listener = Listener(server, port=0, log_level="warning", access_log=False)
    listener.config.app.router.routes.append(Route("/duck", duck))  # type: ignore[union-attr]
    print(listener.bind(), flush=True)
    listener.answer()


def timed(port: int, paths: list[str], threads: int = 1) -> dict[str, float]:
    """Milliseconds of requests over kept connections, and requests a second."""

    def ask(part: list[str]) -> list[float]:
        connection, took = http.client.HTTPConnection("localhost", port), []
        for path in part:
            began = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            took.append((time.perf_counter() - began) * 1e3)
            assert answer.status == 200, body
            assert b'"rows": [{' in body or b'"ranks": {"1"' in body, (path, body)
        return took

    ask(paths)  # so that the server is warm
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        parts = [paths[n::threads] for n in range(threads)]
        took = sorted(ms for part in pool.map(ask, parts) for ms in part)
    rate = len(took) / (time.perf_counter() - began)
    p99 = took[min(len(took) - 1, round(0.99 * len(took)))]
    found = {"p50": statistics.median(took), "p99": p99, "requests/s": rate}
    return {name: round(value, 2) for name, value in found.items()}


LUA = """
local paths, n = {}, 0
for path in io.lines("%s") do paths[#paths + 1] = path end
request = function() n = n + 1; return wrk.format("GET", paths[n %% #paths + 1]) end
"""


def by_wrk(port: int, paths: list[str], seconds: int = 5) -> float | None:
    """Requests a second of `wrk`, over four connections; None where it is not installed."""
    if not shutil.which("wrk"):
        return None
    with TemporaryDirectory() as folder:
        asked, script = Path(folder, "paths"), Path(folder, "ask.lua")
        asked.write_text("\n".join(paths))
        script.write_text(LUA % asked)
        command = ["wrk", "-t1", "-c4", f"-d{seconds}", "-s", str(script)]
        done = subprocess.run(
            [*command, f"http://localhost:{port}"], capture_output=True, text=True, check=True
        )
    assert "Non-2xx" not in done.stdout, done.stdout
    return float(done.stdout.partition("Requests/sec:")[2].split()[0])


def arrow(port: int, megabytes: float = 100) -> dict[str, float]:
    """Megabytes a second of Arrow pages, in key order and in none."""
    found = {}
    for order in ("key", "none"):
        connection, size, cursor = http.client.HTTPConnection("localhost", port), 0, ""
        began = time.perf_counter()
        while size < megabytes * 1e6:
            path = f"/v1/tables/traces/rows?order={order}&limit=1000000&format=arrow{cursor}"
            connection.request("GET", path)
            answer = connection.getresponse()
            size += len(answer.read())
            assert answer.status == 200
            cursor = f"&cursor={answer.headers['Sluice-Cursor']}"
            if cursor.endswith("=None"):
                break
        found[f"MB/s, order={order}"] = round(size / 1e6 / (time.perf_counter() - began))
    return found


def seen_after(port: int, project: Project) -> float:
    """Milliseconds from a commit until the server answers by its version."""
    ask = lambda: sluice.connect(f"http://localhost:{port}").table("traces").version  # noqa: E731
    table, before = DeltaTable(layout(project).uri("bench.traces")), ask()
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    began = time.perf_counter()
    while ask() == before:
        pass
    return round((time.perf_counter() - began) * 1e3, 1)


def questions(requests: int, tops: int, known: list[tuple[int, str]]) -> dict[str, list[str]]:
    """Paths of each question."""
    chance = np.random.default_rng(2)
    keys = [known[n] for n in chance.integers(0, len(known), requests)]
    of = [int(n) for n in chance.integers(0, tops // 10, requests)]
    rows = "/v1/tables/traces/rows?key="
    quoted = [(k, at.replace("+", "%2B")) for k, at in keys]
    return {
        "newest ten of a key": [f"{rows}{k}&reverse=true&limit=10" for k, _ in keys],
        "newest ten, DuckDB": [f"/duck?key={k}" for k, _ in keys[:FEW]],
        "get": [f"{rows}{k}&key={at}&order=key" for k, at in quoted],
        "get, DuckDB": [f"/duck?key={k}&at={at}" for k, at in quoted[:FEW]],
        "top": [f"/v1/tables/best/top?partition=service={n}" for n in of],
    }


def main(argv: list[str]) -> None:
    """Prints a table, and everything as a line of JSON."""
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 1_000_000), ("tops", 100_000), ("requests", 300)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path, default=Path(".cache/benchmarks/serving"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        serve(given.folder)
        return
    folder = given.folder.resolve() / f"{given.rows}-{given.tops}"
    project = declared(folder, TABLES, "1g")
    if not (folder / "lake").exists():
        fill(project, given.rows, given.tops)
    command = [sys.executable, "-m", "tests.benchmarks.serving", "--serve", "--folder", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        port, process = int(server.stdout.readline()), psutil.Process(server.pid)
        show(given, port, process, project)
    finally:
        server.terminate()
        server.wait()


def show(given: argparse.Namespace, port: int, process: psutil.Process, project: Project) -> None:
    """Measure and print."""
    store = sluice.connect(f"http://localhost:{port}").window("traces")
    some = store.fetch(limit=20_000, columns=["service", "window_start"])
    known = [(row["service"], row["window_start"].isoformat()) for row in some]
    found: dict[str, Any] = {"rows": given.rows, "load_average": round(os.getloadavg()[0], 1)}
    table = Table(
        "", "p50 ms", "p99 ms", "requests/s", "requests/s, 4 at a time", "server's CPU ms"
    )
    for name, paths in questions(given.requests, given.tops, known).items():
        alone = timed(port, paths)
        before = sum(process.cpu_times()[:2])
        together = timed(port, paths, threads=4)["requests/s"]
        cpu = round((sum(process.cpu_times()[:2]) - before) * 1e3 / (2 * len(paths)), 2)
        found[name] = alone | {"together": together, "cpu_ms": cpu}
        if "DuckDB" not in name:
            found[name]["by wrk"] = by_wrk(port, paths)
        table.add_row(name, *(str(value) for value in (*alone.values(), together, cpu)))
    found |= {"ms until a version is seen": seen_after(port, project)} | arrow(port)
    found |= {"MB of memory": round(process.memory_info().rss / 1e6)}
    Console(width=140).print(table)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
