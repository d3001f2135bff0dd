"""Create the secrets of a deployment on its first start: one file each, only for its user.

`python make_secrets.py FOLDER KEYS`. KEYS gets only those of the store, which Spark sees, too.
Existing files stay, so it is safe to repeat.
"""

import json
import os
import sys
from base64 import urlsafe_b64encode
from pathlib import Path
from secrets import token_bytes, token_hex, token_urlsafe

KEYS = {"fernet": 32, "jwt": 64, "session": 32}  # bytes


def main() -> None:
    """Create missing secrets, and print the place of the password of `admin`."""
    folder = Path(sys.argv[1])
    database = token_urlsafe(24)
    _keep(folder / "postgres", database)
    known = (folder / "postgres").read_text("utf-8")
    _keep(folder / "database", f"postgresql+psycopg2://airflow:{known}@postgres/airflow")
    _keep(folder / "passwords.json", json.dumps({"admin": token_urlsafe(12)}))
    for name, size in KEYS.items():
        _keep(folder / name, urlsafe_b64encode(token_bytes(size)).decode())
    _keep_keys(Path(sys.argv[2]))
    print(f"the password of admin is in {folder / 'passwords.json'}")


def _keep_keys(folder: Path) -> None:
    """Store the keys of the store's only user: for the store, and as a profile for its clients."""
    user, secret = token_hex(10), token_urlsafe(30)
    owner = {
        "name": "sluice",
        "credentials": [{"accessKey": user, "secretKey": secret}],
        "actions": ["Admin"],
    }
    _keep(folder / "store.json", json.dumps({"identities": [owner]}))
    (stored,) = json.loads((folder / "store.json").read_text("utf-8"))["identities"]
    (known,) = stored["credentials"]
    profile = (
        f"[default]\naws_access_key_id = {known['accessKey']}\n"
        f"aws_secret_access_key = {known['secretKey']}\n"
    )
    _keep(folder / "credentials", profile)


def _keep(file: Path, text: str) -> None:
    if not file.exists():
        with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as handle:
            handle.write(text)


if __name__ == "__main__":
    main()
