"""The deployment's lake lies in its store: by its file, and by its commands run as processes."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.crash.shop import FIRST, day
from tests.stores.stored_shop import StoredShop
from tests.support.stores import GRPC, PORTS, Store, using

from ports import free_port

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text("utf-8"))
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
RUNS_TASKS = ("scheduler", "api-server", "dag-processor", "spark-connect")
INSIDE = {"/opt/sluice/docker": str(ROOT / "docker"), "0.0.0.0": "127.0.0.1"}


def test_the_lake_of_all_that_read_it_is_in_the_store() -> None:
    for name in RUNS_TASKS:
        environ, volumes = SERVICES[name]["environment"], SERVICES[name]["volumes"]
        assert environ["SLUICE_LAKE"] == "s3://lakes/lake"
        assert environ["AWS_ENDPOINT_URL"] == "http://store:8333"
        assert Path(environ["AWS_SHARED_CREDENTIALS_FILE"]).parent == Path("/keys")
        assert "keys:/keys:ro" in volumes
    worker = SERVICES["spark-worker"]
    assert "keys:/keys:ro" in worker["volumes"]
    assert worker["environment"].items() >= COMPOSE["x-store-access"].items()
    assert SERVICES["bucket"]["command"][-1] == "lakes"


def test_only_the_ui_and_the_report_are_published_on_loopback() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"api-server": ["127.0.0.1:8080:8080"], "reports": ["127.0.0.1:8081:8081"]}
    outside = {n for n, service in SERVICES.items() if "outside" in service["networks"]}
    assert outside == set(ports)
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_the_report_is_written_to_where_it_is_served() -> None:
    folder = SERVICES["scheduler"]["environment"]["SLUICE_REPORTS"]
    assert f"reports:{folder}" in SERVICES["scheduler"]["volumes"]
    assert SERVICES["reports"]["command"][-1] == folder
    assert f"reports:{folder}:ro" in SERVICES["reports"]["volumes"]


def test_every_variable_is_read_and_none_holds_a_key() -> None:
    read = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "docker").glob("*.py")]
    read += [*(ROOT / "libs").rglob("*.py"), ROOT / "docker" / "Dockerfile"]
    texts = "\n".join(path.read_text("utf-8") for path in read)
    names = {n for service in SERVICES.values() for n in service.get("environment", ())}
    assert {n for n in names if n.startswith("SLUICE_") and n not in texts} == set()
    assert not {n for n in names if re.search("ACCESS_KEY|SECRET_ACCESS|TOKEN", n)}


def test_every_volume_has_a_folder_that_its_user_owns() -> None:
    """A new volume takes the owner of the image's folder; none is left to root."""
    made = re.search(r"install -d -o sluice .*", (ROOT / "docker/Dockerfile").read_text("utf-8"))
    assert made is not None
    used = {v for name, s in SERVICES.items() if name != "postgres" for v in s.get("volumes", ())}
    places = {volume.split(":")[1] for volume in used}
    assert places <= set(made[0].split())


def here(word: str, folder: Path) -> str:
    """A word of a service's command, for a process on this machine."""
    for inside, outside in INSIDE.items():
        word = word.replace(inside, outside)
    return re.sub(r"/(keys|secrets|data)\b", lambda found: f"{folder}/{found[1]}", word, count=1)


def command(name: str, folder: Path) -> list[str]:
    program, *words = SERVICES[name]["command"]
    programs = {"python": sys.executable, "weed": f"{sysconfig.get_path('scripts')}/weed"}
    return [programs[program], *(here(word, folder) for word in words)]


@contextmanager
def serving(folder: Path, ports: Mapping[str, int]) -> Iterator[None]:
    """Run the command of the service `store`, on other ports."""
    sockets = [f"-{name}.localSocket={folder / name}" for name in ("s3", "filer")]
    words = [*command("store", folder), *sockets, *(f"-{n}={p}" for n, p in ports.items())]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_its_commands_make_a_store_in_which_a_day_is_delivered(tmp_path: Path) -> None:
    for name in ("keys", "secrets", "data/store"):
        (tmp_path / name).mkdir(parents=True)
    subprocess.run(command("secrets", tmp_path), check=True, capture_output=True)
    ports = {name: free_port() for name in (*PORTS, *GRPC)}
    store = Store(tmp_path, ports)
    access = {n: here(v, tmp_path) for n, v in COMPOSE["x-store-access"].items()}
    access["AWS_ENDPOINT_URL"] = store.endpoint
    with serving(tmp_path, ports), using(access):
        for _ in range(2):  # it is safe to repeat
            made = command("bucket", tmp_path)
            subprocess.run(made, check=True, capture_output=True, env={**os.environ})
        shop = StoredShop.begin(tmp_path / "shop", store)
        (shop.config / "sluice.yaml").write_text("lake: s3://lakes/lake\n")
        pipeline = shop.config / "pipelines" / "shop.yaml"
        landing = f"s3://{shop.bucket}/landing"
        pipeline.write_text(pipeline.read_text().replace(landing, f"{shop.folder}/landing"))
        super(StoredShop, shop).land(1, *FIRST)
        shop.run(day(1))
        shop.check()
