"""`doctor` names versions that were not tested together; the docs list those that were."""

import re
from pathlib import Path

import pytest

from sluice.operate import doctor
from sluice.operate.doctor import untested_versions
from sluice.spark import jars

PAGE = Path(__file__).parents[2] / "docs" / "install.md"


def test_the_docs_list_what_was_tested() -> None:
    section = PAGE.read_text("utf-8").partition("## Tested versions")[2]
    rows = re.findall(r"^\| (3\.\d+) \| (.+?) \|$", section, re.MULTILINE)
    listed = set()
    for python, cells in rows:
        pyspark, _, deltalake, pyarrow, pandas, *_ = cells.split(" | ")
        listed.add((python, *(doctor.minor(v) for v in (pyspark, deltalake, pyarrow, pandas))))
    assert listed == set(doctor.TESTED)


def test_versions_of_the_lock_were_tested() -> None:
    assert untested_versions() == []


def test_an_untested_pair_is_named_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "pyspark-client": "4.2.0",
        "deltalake": "1.7.0",
        "pyarrow": "26.0.1",
        "pandas": "2.3.3",
    }
    monkeypatch.setattr(doctor, "version", found.__getitem__)
    (finding,) = untested_versions()
    assert not finding.stops
    assert "pyspark-client 4.2, deltalake 1.7, pyarrow 26.0, pandas 2.3 were not tested" in (
        finding.what
    )
    assert "the nearest that were: Python 3.11, pyspark-client 4.2, deltalake 1.6" in finding.what


def test_a_spark_of_another_release_than_its_client_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"pyspark": "4.1.3", "pyspark-client": "4.2.0"}
    monkeypatch.setattr(jars, "version", found.__getitem__)
    (finding,) = untested_versions()
    assert "pyspark is 4.1.3, but pyspark-client" in finding.what
    assert "pip install --force-reinstall --no-deps pyspark==4.2.0" in finding.repair
