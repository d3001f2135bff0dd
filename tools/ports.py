"""Free loopback ports for servers that start soon. They are below the range for outgoing
connections, so that no connection takes one in between.
"""

import socket
from random import SystemRandom

LOWEST, HIGHEST = 20_000, 32_000
_given: set[int] = set()


def free_port(wanted: int = 0) -> int:
    """Return `wanted` if it is free, else a free port that this process has not returned yet."""
    if wanted and _is_free(wanted):
        return wanted
    while True:
        port = SystemRandom().randrange(LOWEST, HIGHEST)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
