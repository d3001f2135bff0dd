"""Tables that can't be read, or are not what they were: each is named, and nothing is changed."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.sources.foreign.conftest import Crm, Following, Made
from tests.support.landed import RUN

from sluice.errors import (
    ConfigError,
    FeedVacuumed,
    InputBehind,
    InputReplaced,
    LogCleaned,
    QualityStop,
    SluiceError,
    UsageError,
)
from sluice.operate.delivering import resume
from sluice.read.pending import unread

KEYED = "key: [id]"


def _filled(following: Made, **how: str) -> Following:
    lake = following(**how)
    lake.crm.create({"id": 1, "v": 1}, {"id": 2, "v": 2})
    lake.take()
    return lake


def _commit(crm: Crm, *actions: object) -> None:
    log = Path(crm.path, "_delta_log", f"{crm.table.version() + 1:020}.json")
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _refused(lake: Following, kind: type[SluiceError], words: str) -> SluiceError:
    before = lake.crm.digest()
    with pytest.raises(kind, match=words) as refused:
        lake.take()
    assert refused.value.hint
    assert lake.crm.digest() == before
    with pytest.raises(kind, match=words):
        unread(lake.project, lake.table("events"))
    return refused.value


def test_a_folder_without_a_table_is_named(following: Made) -> None:
    lake = following()
    _refused(lake, UsageError, "there is no Delta table at .*crm")
    Path(lake.crm.path).mkdir()
    Path(lake.crm.path, "a.parquet").write_bytes(b"PAR1")
    _refused(lake, UsageError, "there is no Delta table at .*crm")


def test_a_feature_that_nobody_knows_is_named(following: Made) -> None:
    lake = _filled(following)
    features = {"readerFeatures": ["fancy"], "writerFeatures": ["fancy"]}
    _commit(lake.crm, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    _refused(lake, UsageError, "can't be opened.*fancy")


def test_a_column_that_is_dropped_is_named_and_others_are_ignored(following: Made) -> None:
    lake = _filled(following)
    write_deltalake(
        lake.crm.path, pa.table({"id": [7], "w": ["x"]}), mode="overwrite", schema_mode="overwrite"
    )
    refused = _refused(lake, QualityStop, r"at version 1 lacks the declared column\(s\) v")
    assert "schema" in refused.hint


def test_a_column_of_another_kind_is_named(following: Made) -> None:
    lake = _filled(following)
    table = pa.table({"id": [7], "v": ["x"]})
    write_deltalake(lake.crm.path, table, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(QualityStop, match="column v is STRING where BIGINT is declared"):
        lake.take()


def test_a_table_made_again_is_named_and_can_be_read_as_it_is(following: Made) -> None:
    lake = _filled(following, extra=KEYED)
    shutil.rmtree(lake.crm.path)
    lake.crm.create({"id": 1, "v": 1}, {"id": 9, "v": 9})
    refused = _refused(lake, InputReplaced, "another one: it was dropped and created again")
    assert re.search("--as-landed.*--from latest", refused.hint)
    reports = lake.rebuild(as_landed=True)
    assert (reports["events"].inserted, reports["events"].deleted) == (1, 1)
    lake.check()
    lake.crm.append({"id": 3, "v": 3})
    lake.take()
    lake.check()


def test_a_table_brought_back_from_a_backup_is_named(following: Made, tmp_path: Path) -> None:
    lake = _filled(following)
    shutil.copytree(lake.crm.path, tmp_path / "backup")
    lake.crm.append({"id": 3, "v": 3})
    lake.take()
    shutil.rmtree(lake.crm.path)
    shutil.copytree(tmp_path / "backup", lake.crm.path)
    _refused(lake, InputBehind, "was read up to version 1, but ends at 0")
    lake.crm.append({"id": 4, "v": 4})
    lake.crm.append({"id": 5, "v": 5})
    _refused(lake, InputReplaced, "version 1 of .* is not the one that was read")


def test_an_operator_may_follow_on_from_the_newest_version(following: Made) -> None:
    lake = _filled(following)
    for n in (3, 4):
        lake.crm.append({"id": n, "v": n})
    lake.crm.table.create_checkpoint()
    for version in (0, 1):
        Path(lake.crm.path, "_delta_log", f"{version:020}.json").unlink()
    _refused(lake, LogCleaned, "was read up to version 0, but its log begins at 2 now")
    report = resume(lake.project, lake.table("events"), RUN, latest=True)
    assert report.warnings == ("shop.events: the changes of versions 1 to 2 are skipped",)
    lake.crm.append({"id": 5, "v": 5})
    lake.take()
    assert lake.values() == {(1, 1): 1, (2, 2): 1, (5, 5): 1}
    assert lake.place().gaps == ((0, 2),)
    with pytest.raises(UsageError, match="oldest version is not a start"):
        resume(lake.project, lake.table("events"), RUN, latest=False)


def test_a_stream_of_files_has_no_other_place_to_continue(following: Made) -> None:
    lake = following()
    followed = (lake.folder / "config" / "pipelines" / "shop.yaml").read_text()
    lake.declare(followed.replace("delta: {path: crm}", "delivery: stream\n    path: crm"))
    with pytest.raises(UsageError, match="--from needs a table that follows a Kafka topic"):
        resume(lake.project, lake.table("events"), RUN, latest=True)


def test_a_cleaned_log_is_named_where_rows_have_gone(following: Made) -> None:
    """The commits after the place are there, but not the version before them."""
    lake = _filled(following)
    lake.crm.table.delete("id = 1")
    lake.crm.table.create_checkpoint()
    Path(lake.crm.path, "_delta_log", f"{0:020}.json").unlink()
    _refused(lake, LogCleaned, "version 0 of .* can't be opened: its log was cleaned")


def test_deleted_files_are_named(following: Made) -> None:
    lake = _filled(following)
    lake.crm.append({"id": 3, "v": 3})
    lake.crm.table.optimize.compact()
    lake.crm.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    _refused(lake, FeedVacuumed, r"versions 1 to 4 of .* 1 of their files were deleted")
    lake.rebuild(as_landed=True)
    lake.check()


def test_a_replay_of_what_was_deleted_is_named(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": None, "v": 1}, {"id": 2, "v": 2})
    lake.take()
    lake.crm.table.update(updates={"v": "9"})
    lake.take()
    resume(lake.project, lake.table("events"), RUN, latest=True)
    assert lake.replay()[0].quarantined == 1
    lake.crm.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    before = lake.versions("events", "events__deliveries", "events__quarantine")
    with pytest.raises(FeedVacuumed, match=r"version 0 of .* can't be read any more") as lost:
        lake.replay()
    assert "--as-landed" in lost.value.hint
    assert lake.versions("events", "events__deliveries", "events__quarantine") == before


def test_a_duplicate_key_is_a_conflict(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1}, {"id": 1, "v": 2}, {"id": 2, "v": 2})
    reports = lake.take()
    assert "2 rows of one key differ" in str(reports[0].warnings)
    assert len(lake.rows("events")) == 2


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("format: csv", "leave `format` out"),
        ("sequence: [v]\nkey: [id]", "leave `sequence` out"),
        ("delivery: interval", "leave `delivery` out"),
        ("path: x", "leave `path` out"),
        ("key: [nothing]", "nothing"),
        ("kafka: {topic: t, connection: c}\nvalue: {format: json}", "leave `kafka`, `value` out"),
    ],
)
def test_what_has_no_meaning_is_refused(following: Made, extra: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        following(extra=extra)


@pytest.mark.parametrize("path", ["crm/*", "'crm/{interval_start:%Y}'", "''"])
def test_a_path_is_one_folder(following: Callable[..., Following], path: str) -> None:
    lake = following()
    text = lake.declared_without("").replace("path: crm", f"path: {path}")
    with pytest.raises(ConfigError, match="path"):
        lake.declare(text)


@pytest.mark.parametrize("key", ["", "key: [id]"])
@pytest.mark.parametrize("was_followed", [True, False])
def test_rows_of_another_way_do_not_continue(following: Made, key: str, was_followed: bool) -> None:
    lake = following(extra=key)
    lake.crm.create({"id": 1, "v": 1})
    followed = (lake.folder / "config" / "pipelines" / "shop.yaml").read_text()
    delivered = followed.replace("delta: {path: crm}", "delivery: stream\n    path: crm")
    before, now = (followed, delivered) if was_followed else (delivered, followed)
    lake.declare(before)
    lake.take()
    lake.declare(now)
    for _ in range(2):
        with pytest.raises(ConfigError, match="arrived in a different way") as refused:
            lake.take()
    assert lake.values() == Counter([(1, 1)])
    if was_followed:
        assert "revert the change" in str(refused.value.hint)
        lake.declare(before)
    else:
        assert "--as-landed" in str(refused.value.hint)
        lake.rebuild(as_landed=True)
    lake.take()
    assert lake.values() == Counter([(1, 1)])
