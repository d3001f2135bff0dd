"""A schema registry; each question is asked once in a process."""

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from sluice.errors import Retryable
from sluice.sources.kafka.connection import registry_address
from sluice.sources.kafka.records import Unusable
from sluice.sources.kafka.spec import Value

ANSWER_S = 15.0
ANY_ID = 1
MEDIA = "application/vnd.schemaregistry.v1+json"


def check_registry(value: Value, table: str) -> None:
    """Raise Retryable if the registry does not answer, UsageError without its connection."""
    with suppress(Unusable):  # it answers that it has no such schema
        schema_text(*registry_address(value.registry, table), ANY_ID)


def schema_text(address: str, user: str, password: str, schema_id: int) -> str:
    """Return a schema of Avro as its registry has it.

    Raises Unusable if there is none of that id, and Retryable if the registry doesn't answer.
    """
    what = f"schema {schema_id}"
    found = answer(address, user, password, f"schemas/ids/{schema_id}", what)
    if found.get("schemaType", "AVRO") != "AVRO":
        raise Unusable(f"{what} is of {found['schemaType']}, not of Avro")
    return str(found["schema"])


@lru_cache(maxsize=1024)
def answer(address: str, user: str, password: str, path: str, what: str) -> Mapping[str, Any]:
    """Return a registry's answer. Raises Unusable without `what`, Retryable if it is not heard."""
    request = Request(f"{address}/{path}", headers={"Accept": MEDIA})
    if user:
        secret = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {secret}")
    try:
        with urlopen(request, timeout=ANSWER_S) as answered:
            found: Mapping[str, Any] = json.loads(answered.read())
    except HTTPError as refused:
        if refused.code == 404:
            raise Unusable(f"the schema registry has no {what}") from None
        raise Retryable(f"the schema registry answers with {refused.code}") from refused
    except (URLError, OSError, ValueError) as unheard:
        raise Retryable(f"the schema registry does not answer: {unheard}") from unheard
    return found
