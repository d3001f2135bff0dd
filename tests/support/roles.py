"""A store with a token service, which gives keys to whoever shows a token of the tests' issuer."""

import base64
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm
from tests.support import stores
from tests.support.stores import Store

from daemons import is_listening
from ports import free_port

ARN = "arn:aws:iam::1:role/lake"
WHO = "sluice"
ALLOWED = {"Effect": "Allow", "Action": ["s3:*", "sts:ValidateSession"], "Resource": ["*"]}
TRUSTED = {
    "Effect": "Allow",
    "Principal": {"Federated": "*"},
    "Action": ["sts:AssumeRoleWithWebIdentity"],
}


@dataclass(frozen=True)
class Roles:
    """The store, and the issuer that it trusts."""

    store: Store
    issuer: str
    key: RSAPrivateKey

    def environ(self, folder: Path, **changed: str) -> dict[str, str]:
        """What a process needs to use the store by the role."""
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "pod", "aud": WHO, "iat": now, "exp": now + 600}
        token = folder / "token"
        token.write_text(jwt.encode(claims, self.key, "RS256", headers={"kid": "one"}))
        nowhere = {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}
        keyless = {n: v for n, v in self.store.environ().items() if "KEY" not in n}
        role = {"AWS_ROLE_ARN": ARN, "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)}
        return {**keyless, **nowhere, **role, **changed}


@contextmanager
def running() -> Iterator[Roles]:
    """The store and the issuer, while they are needed."""
    port, key = free_port(), generate_private_key(65537, 2048)
    issuer = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        public = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
        known = {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}
        Path(folder, "keys").write_text(json.dumps(known))
        command = [sys.executable, "-m", "http.server", str(port), "--bind=127.0.0.1"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as host:
            try:
                while not is_listening(port):
                    assert host.poll() is None
                with stores.running(_known(issuer)) as store:
                    yield Roles(store, issuer, key)
            finally:
                host.kill()


def _known(issuer: str) -> Mapping[str, Any]:
    """One role, for tokens of that issuer; it may do all."""
    version = {"Version": "2012-10-17"}
    provider = {"issuer": issuer, "clientId": WHO, "jwksUri": f"{issuer}/keys"}
    role = {
        "roleName": "lake",
        "roleArn": ARN,
        "attachedPolicies": ["all"],
        "trustPolicy": {**version, "Statement": [TRUSTED]},
    }
    return {
        "sts": {
            "issuer": "store",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "providers": [{"name": "pods", "type": "oidc", "enabled": True, "config": provider}],
        "policies": [{"name": "all", "document": {**version, "Statement": [ALLOWED]}}],
        "roles": [role],
    }
