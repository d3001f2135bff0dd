"""The end of a command's process."""

import subprocess
import sys

import click
import pytest

from sluice.terminal import as_guest, run

ENDS = """
import atexit, os, sys, threading, time
import click
from sluice.terminal import run

class Held:
    def __del__(self, say=os.write):
        say(2, b"freed")

held = Held()

def late():
    time.sleep(0.2)
    print("thread")

@click.command()
def main():
    atexit.register(print, "handler")
    threading.Thread(target=late).start()
    {end}

run(main)
"""


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('of its own')", 1, "ValueError: of its own"),
    ],
)
def test_threads_and_exit_handlers_end_first_and_nothing_is_freed(
    end: str, code: int, said: str
) -> None:
    """A thread of Arrow that holds what is being freed aborts the process, one time in many."""
    command = [sys.executable, "-c", ENDS.format(end=end)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "thread\nhandler\n")
    assert said in done.stderr
    assert "freed" not in done.stderr


def test_garbage_is_looked_for_rarely() -> None:
    """Imports make so many objects that looking through them took a third of their time."""
    code = (
        "import click, gc\n"
        "from sluice.terminal import run\n"
        "@click.command()\n"
        "def main():\n"
        "    before = gc.get_stats()[0]['collections']\n"
        "    held = [[] for _ in range(200_000)]\n"
        "    print(gc.get_stats()[0]['collections'] - before)\n"
        "run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10


def test_within_another_program_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["job"])

    @click.command()
    def main() -> None:
        sys.exit(3)

    with as_guest(), pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == 3
