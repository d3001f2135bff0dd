"""Make bakery/manifest.json and catalog.json again, with a dbt of your own.

    pip install 'dbt-core==1.11.16' 'dbt-duckdb==1.11.1'    # in an environment of its own
    python tests/dbt/generate.py

The project is built in a temporary folder. What names this machine is left out, and so are macros.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BAKERY = Path(__file__).parent / "bakery"
STEPS = (["build", "--full-refresh"], ["docs", "generate"], ["compile", "--full-refresh"])
OF_THE_MACHINE = ("root_path", "build_path", "compiled_path", "created_at", "invocation_id")
OF_THE_MACHINE_TOO = ("user_id", "project_id", "run_started_at", "invocation_started_at")
EMPTIED = ("macros", "docs", "selectors", "parent_map", "child_map")


def main() -> None:
    with TemporaryDirectory() as place:
        project = Path(shutil.copytree(BAKERY, Path(place) / "bakery"))
        settings = {"DBT_PROFILES_DIR": str(project), "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}
        for step in STEPS:
            command = ["dbt", "--quiet", *step]
            subprocess.run(command, cwd=project, env=os.environ | settings, check=True)
        for name in ("manifest.json", "catalog.json"):
            found = json.loads((project / "target" / name).read_text("utf-8"))
            found |= {part: {} for part in EMPTIED if part in found}
            text = json.dumps(stripped(found), indent=1, sort_keys=True) + "\n"
            if place in text:
                sys.exit(f"{name} names a folder of this machine")
            (BAKERY / name).write_text(text, "utf-8")


def stripped(found: Any) -> Any:
    """The same without what differs from machine to machine, and without what is empty."""
    if isinstance(found, list):
        return [stripped(one) for one in found]
    if not isinstance(found, dict):
        return found
    gone = {*OF_THE_MACHINE, *OF_THE_MACHINE_TOO}
    return {name: stripped(value) for name, value in found.items() if name not in gone}


if __name__ == "__main__":
    main()
