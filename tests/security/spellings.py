"""Spellings of a secret."""

import base64
from urllib.parse import quote


def spellings(secret: str) -> list[bytes]:
    raw = secret.encode()
    every = [raw, raw[::-1], base64.b64encode(raw), base64.urlsafe_b64encode(raw)]
    return [*every, quote(secret, safe="").encode(), quote(secret).encode(), raw.hex().encode()]
