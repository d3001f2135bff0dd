"""Answers of brokers to a client's requests, and named errors for missing ones.

A client never gives up, but reconnects forever. So Sluice checks its connection errors while it
waits for an answer, and a refusal ends the wait at once.
"""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice.errors import Retryable, UsageError
from sluice.sources.topic import Topic

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

LOOKED_S = 0.1  # between checks of the faults
REFUSED = re.compile(
    r"SASL authentication error|mechanism handshake failed|certificate verify failed|"
    r"alert [a-z ]*(certificate|unknown ca)"
)


@dataclass(frozen=True)
class Answers:
    """Answers of a topic's brokers within some time. `faults`: of connections to them."""

    table: str
    topic: Topic
    within_s: float
    faults: "list[KafkaError]"

    def result(self, admin: "AdminClient", future: Any) -> Any:
        """Return an answer. Raises UsageError for a missing topic, Retryable without an answer."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return self._awaited(admin, future)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise UsageError(
                    f"{self.table}: there is no topic {self.topic.topic}",
                    hint="create it, or correct `kafka.topic`",
                ) from None
            raise self._unheard(admin, error.str()) from failure
        except TimeoutError as late:
            raise self._unheard(admin, f"no answer within {self.within_s:g} s") from late

    def check_refused(self, fault: "KafkaError") -> None:
        """Raise UsageError if a login or a certificate was refused, by either side."""
        why = fault.str()
        if not REFUSED.search(why) or "Local:" in why:
            return  # the connection may only have been interrupted
        raise UsageError(
            f"{self.table}: can't log in to the brokers of the connection "
            f"{self.topic.connection!r}: "
            f"{why}",
            hint="correct its login and password, or the settings of SASL and TLS among its "
            "extra fields",
        )

    def _awaited(self, admin: "AdminClient", future: Any) -> Any:
        """Return an answer, unless no broker is left to give it."""
        last = time.monotonic() + self.within_s
        while (left := last - time.monotonic()) > 0:
            with suppress(TimeoutError):
                return future.result(min(left, LOOKED_S))
            admin.poll(0)
            if any(map(_is_of_all, self.faults)):
                for fault in self.faults:
                    self.check_refused(fault)
        return future.result(0)

    def _unheard(self, admin: "AdminClient", why: str) -> Retryable:
        """Return the error of brokers that don't answer, with the last fault of a connection."""
        admin.poll(0)
        last = next((f"; {each.str()}" for each in self.faults[::-1] if not _is_of_all(each)), "")
        return Retryable(
            f"{self.table}: the brokers of the connection {self.topic.connection!r} don't answer: "
            f"{why}{last}"
        )


def _is_of_all(fault: "KafkaError") -> bool:
    """True if no broker can be reached."""
    from confluent_kafka import KafkaError

    return bool(fault.code() == KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 # its public name
