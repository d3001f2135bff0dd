"""`make demo-year`: the whole year, 365 intervals, with `sluice run`; then every view is verified.

It begins with an empty lake and needs no Airflow. It reports time and memory: the cost of a
pipeline's days, one after the other.
"""

import argparse
import os
import subprocess
import sys
import time
from datetime import date
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from rich.console import Console

import landing
import story
from daemons import tree
from gauge import Gauge
from room import make_room
from shopping import FIRST_DAY, YEAR_END
from sluice.declare.project import load
from stack import ROOT

PIPELINE = "retail"
console = Console()


def main() -> int:
    """Run the demo; return 0 if every view equals its recompute."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--end", type=date.fromisoformat, default=YEAR_END, help="stop earlier")
    end = parser.parse_args().end
    os.environ["SLUICE_CONFIG"] = str(ROOT / "config")
    return story.told(partial(_demo, end))


def _demo(end: date) -> int:
    make_room(load(ROOT / "config"))
    folder = ROOT / os.environ.get("SLUICE_LANDING", "landing")
    count = (end - FIRST_DAY).days
    began = time.monotonic()
    with console.status(f"delivering {count} days to {folder.name}/"):
        landing.split(folder, FIRST_DAY, end)
    console.print(f"delivered {count} days in {time.monotonic() - began:.0f} s")
    bounds = ("--start", str(FIRST_DAY), "--end", str(end))
    code, seconds = _sluice("run", PIPELINE, *bounds)
    if code == 0:
        console.print(f"{count} intervals: {seconds / count:.1f} s each")
        code, _ = _sluice("verify")
    return code


def _sluice(*arguments: str) -> tuple[int, float]:
    """Run a command; return its exit code and seconds, and show its memory."""
    command = [str(Path(sys.executable).with_name("sluice")), *arguments]
    console.rule(f"sluice {' '.join(arguments)}", align="left")
    began = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            with Gauge(partial(tree, psutil.Process(process.pid))) as gauge:
                code = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    seconds = time.monotonic() - began
    console.print(f"sluice {arguments[0]}: {seconds:.0f} s; most memory held: {gauge}")
    return code, seconds


if __name__ == "__main__":
    sys.exit(main())
