"""Files and folders that are hard to read: odd names, links, pipes, and what nobody may open."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

NOBODY = 65534

ODD_NAMES = (
    "plain",
    "[a-c]",
    "a[1]",
    "open[",
    "]shut",
    "{a,b}",
    "{open",
    "shut}",
    "*",
    "a*b",
    "?",
    "a?b",
    "k\\l",
    "\\",
    "\\*",
    "it's",
    'a "quote"',
    "`tick`",
    "#1",
    "a#b",
    "%20",
    "a%zz",
    "a+b",
    "12:30",
    "12:[30]",
    "a,b",
    " space ",
    "a line\nbreak",
    "a\r\nb",
    "tab\t",
    "\x01\x7f",
    "Umsätze",
    "日本",
    "\U0001f600",
    "e\u0301",
    "-rf",
    "--",
    "~",
    "$HOME",
    "a;b|c&d",
    "(a)",
    "n=5/x",
    "n=6/x",
    "id=7/n=__HIVE_DEFAULT_PARTITION__/x",
    "folder.csv/x",
    "folder.json/x",
    "folder.parquet/x",
    "12:00/[x]/{y}",
    os.fsdecode(b"caf\xe9"),
    os.fsdecode(b"folder \xff/[x]"),
    "x" * 240,
    "/".join(["deep" * 40] * 6),
)
"""Each of them a path below a folder, without an ending."""


def shown(name: str) -> str:
    """The name as it is found in text: bytes that are no UTF-8 as Python shows them."""
    return os.fsencode(name).decode(errors="backslashreplace")


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="sluice-open-") as made:
        folder = Path(made).resolve()
        folder.chmod(0o755)
        yield folder


@contextmanager
def as_nobody() -> Iterator[None]:
    """While this process has no more rights than any user; it has them not as root anyway."""
    if os.geteuid() != 0:
        yield
        return
    group = os.getegid()
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)


def put_socket(path: Path) -> None:
    """Leave a socket there, under a name that may be longer than sockets take."""
    folder = os.open(path.parent, os.O_RDONLY)
    with closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)
