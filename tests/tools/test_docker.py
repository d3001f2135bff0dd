"""The deployment's files, by the tools of those who wrote the formats: no engine is needed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE = "github.com/compose-spec/compose-go/v2/cmd@v2.9.1"


def resolved(file: Path) -> subprocess.CompletedProcess[str]:
    """A compose file as compose itself reads it."""
    if not shutil.which("go"):
        pytest.skip("there is no Go to build compose-go with")
    command = ["go", "run", COMPOSE, str(file)]
    return subprocess.run(command, cwd=DOCKER, capture_output=True, text=True, check=False)


def test_the_dockerfile_has_no_complaint_of_hadolint() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [hadolint, DOCKER / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_compose_reads_the_file_and_publishes_two_ports_on_loopback() -> None:
    done = resolved(DOCKER / "compose.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("host_ip: 127.0.0.1") == done.stdout.count("published:") == 2


def test_compose_refuses_a_misspelt_key(tmp_path: Path) -> None:
    text = (DOCKER / "compose.yaml").read_text("utf-8").replace("healthcheck:", "healthchek:")
    (tmp_path / "compose.yaml").write_text(text, "utf-8")
    done = resolved(tmp_path / "compose.yaml")
    assert done.returncode != 0
    assert "healthchek" in done.stderr


def test_what_the_images_take_is_there_and_what_they_leave_out_is_ignored() -> None:
    text = (DOCKER / "Dockerfile").read_text("utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    own = [name for names in copied for name in names if not name.startswith(("--", "/"))]
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert kept[0] == "*"
    for name in own:
        assert (ROOT / name).exists(), name
        inside = (name, *Path(name).parents, f"{Path(name).parent}/*.py")
        assert {f"!{one}" for one in inside} & set(kept), name


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    folders = [tmp_path / "secrets", tmp_path / "keys"]
    for folder in folders:
        folder.mkdir()
    command = [sys.executable, str(DOCKER / "make_secrets.py"), *map(str, folders)]
    subprocess.run(command, check=True, capture_output=True)
    own, keys = ({f.name: f.read_text("utf-8") for f in folder.iterdir()} for folder in folders)
    assert set(own) == {"postgres", "database", "passwords.json", "fernet", "jwt", "session"}
    assert set(keys) == {"store.json", "credentials"}
    assert all(f.stat().st_mode & 0o077 == 0 for folder in folders for f in folder.iterdir())
    assert own["postgres"] in own["database"]
    subprocess.run(command, check=True, capture_output=True)
    again = [{f.name: f.read_text("utf-8") for f in folder.iterdir()} for folder in folders]
    assert again == [own, keys]
