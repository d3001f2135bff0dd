"""What reading the DAG file of many pipelines costs: CPU seconds, first and from what was kept.

python -m tests.benchmarks.dag_parse [--pipelines 100]

Each pipeline has three sources, a dimension and six views. Airflow's own imports are not counted:
its DAG processor has them done before it reads a file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
pipeline: {name}
schedule: "@daily"
start_date: 2024-01-01
dimensions:
  items: {{path: items/, format: json, schema: "item INT, maker INT", key: [item]}}
"""
SOURCE = """
  sales_{n}:
    path: "sales/{{interval_start:%Y-%m-%d}}/"
    format: json
    schema: id INT, item INT, paid INT
    key: [id]
"""
VIEWS = """
  sums_{n}:
    kind: cogroup
    key: [item]
    streams: {{sales: {{from: sales_{n}, aggregates: {{paid: sum(paid)}}}}}}
  best_{n}: {{kind: topk, from: sums_{n}, order_by: [paid desc], limit: 5}}
"""
READ = f"""
import json, time
import airflow.models, airflow.dag_processing.processor, airflow.serialization.serialized_objects
from airflow.dag_processing.dagbag import DagBag
began = time.process_time()
import importlib.util
spec = importlib.util.spec_from_file_location("pipelines", {str(ROOT / "dags/pipelines.py")!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
spent = time.process_time() - began
dags = [dag for name, dag in vars(module).items() if name == getattr(dag, "dag_id", None)]
tasks = sum(len(dag.tasks) for dag in dags)
print("@" + json.dumps([round(spent, 3), tasks]))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "config", asked.pipelines)
        environ = {**os.environ, "AIRFLOW_HOME": folder, "SLUICE_CONFIG": f"{folder}/config"}
        read(environ)  # compiles and imports what nobody has yet
        for file in (Path(folder) / "sluice").glob("*.kept"):
            file.unlink()
        (first, tasks), *others = [read(environ) for _ in range(4)]
    again = min(spent for spent, _ in others)
    print_ = Console().print
    print_(f"{asked.pipelines} pipelines, {tasks} tasks: {first} s first, {again} s from then on")


def write(config: Path, pipelines: int) -> None:
    """Their configuration."""
    (config / "pipelines").mkdir(parents=True)
    (config / "sluice.yaml").write_text("spark: {engine: connect}\n", "utf-8")
    for nth in range(pipelines):
        sources = "".join(SOURCE.format(n=n) for n in range(3))
        views = "".join(VIEWS.format(n=n) for n in range(3))
        name = f"p{nth:03}"
        text = f"{HEAD.format(name=name)}sources:{sources}views:{views}"
        (config / "pipelines" / f"{name}.yaml").write_text(text, "utf-8")


def read(environ: dict[str, str]) -> tuple[float, int]:
    """CPU seconds of one reading, and how many tasks came of it."""
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("@"))
    spent, tasks = json.loads(line[1:])
    return spent, tasks


if __name__ == "__main__":
    main()
