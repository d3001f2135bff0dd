"""Faults of a store have names, hints and exit codes; unanswered commits are found out."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.crash.shop import day
from tests.stores.stored_shop import StoredShop
from tests.support.proxy import COMMIT, LIST, Harm, Proxy, Rule
from tests.support.stores import Store, using

from sluice.delta.places.delta_rs import store_fault
from sluice.engine import retries
from sluice.errors import SluiceError, StoreRefused

RUN = ("run", "shop", "--start", "2024-01-01", "--end", "2024-01-02")
WRONG = ("unknown", "wrong")
CLOSED = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are tried again, but at once."""
    monkeypatch.setattr(retries, "PAUSES", (0.0,))


def sluice(shop: StoredShop, environ: Mapping[str, str], *words: str) -> tuple[int, str]:
    with using(environ):
        done = shop.sluice(*words)
    return done.code, done.out + done.err


def elsewhere(shop: StoredShop, bucket: str) -> None:
    (shop.config / "sluice.yaml").write_text(f"lake: s3://{bucket}/lake\n")


@pytest.mark.parametrize("words", [RUN, ("status",), ("read", "sales")], ids=lambda w: w[0])
def test_a_bucket_that_is_not_there(shop: StoredShop, store: Store, words: tuple[str, ...]) -> None:
    bucket = f"nowhere-{words[0]}"  # the server makes a bucket that somebody writes to
    elsewhere(shop, bucket)
    code, said = sluice(shop, store.environ(), *words)
    assert code == 2
    assert "there is no bucket of this name" in said
    assert repr(bucket) in said
    assert "Traceback" not in said


@pytest.mark.parametrize("words", [RUN, ("status",)], ids=lambda w: w[0])
def test_unknown_credentials(shop: StoredShop, store: Store, words: tuple[str, ...]) -> None:
    code, said = sluice(shop, store.environ(key=WRONG), *words)
    assert code == 2
    assert "the store does not know the access key" in said
    code, said = sluice(shop, store.environ(key=(store.key[0], "wrong")), *words)
    assert code == 2
    assert "the secret key is not that of the access key" in said


def test_one_who_may_only_read_is_refused_to_write(shop: StoredShop, store: Store) -> None:
    code, said = sluice(shop, store.environ(key=store.reader), *RUN)
    assert code == 2
    assert "may not write there" in said
    assert "PutObject" in said
    shop.run(day(1))
    code, said = sluice(shop, store.environ(key=store.reader), "get", "totals", "a", "oil")
    assert (code, "5.50" in said) == (0, True)


def test_one_who_may_not_list_is_refused_by_name(shop: StoredShop, store: Store) -> None:
    with (
        using(store.environ(key=store.blind)),
        pytest.raises(SluiceError, match="may not list") as no,
    ):
        shop.run(day(1))
    assert no.value.exit_code == 2


@pytest.mark.usefixtures("impatient")
def test_a_store_that_is_away_is_worth_another_try(shop: StoredShop, store: Store) -> None:
    with using(store.environ(CLOSED)), pytest.raises(SluiceError, match="not answer") as failed:
        shop.run(day(1))
    assert failed.value.exit_code == 3


def test_faults_that_pass_are_not_noticed(shop: StoredShop, store: Store, proxied: Proxy) -> None:
    rules = [
        Rule(Harm.BUSY, "PUT", COMMIT, times=2),
        Rule(Harm.FAULT, "GET", LIST, times=2),
        Rule(Harm.DROPPED, "GET", "landing", times=1),
        Rule(Harm.DROPPED, "PUT", COMMIT, times=3),
        Rule(Harm.CUT, "GET", r"\.parquet", times=1),
        Rule(Harm.LATE, "PUT", r"\.parquet", times=3),
    ]
    with using(store.environ(proxied.endpoint)), proxied.harming(*rules):
        said = shop.run(day(1))
        assert {Harm.BUSY, Harm.FAULT, Harm.DROPPED, Harm.LATE} <= set(proxied.done)
    assert {outcome.split()[1] for outcome in said} == {"committed"}
    shop.check()


@pytest.mark.parametrize("table", ["sales", "totals__state"])  # of files, and of a view
def test_a_commit_that_landed_without_an_answer_is_found_out(
    corrected: StoredShop, store: Store, proxied: Proxy, table: str
) -> None:
    rule = Rule(Harm.LOST, "PUT", f"/{table}{COMMIT}", times=1)
    with using(store.environ(proxied.endpoint)), proxied.harming(rule):
        said = corrected.run(day(1))
        assert proxied.done[Harm.LOST] == 1
    assert f"shop.{table} committed" in said
    corrected.check()
    assert {o.split()[1] for o in corrected.run(day(1))} == {"unchanged"}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("harm", [Harm.LOST, Harm.DROPPED])
def test_a_store_that_leaves_in_a_commit_is_asked_by_the_next_run(
    corrected: StoredShop, store: Store, proxied: Proxy, harm: Harm
) -> None:
    landed = harm is Harm.LOST
    rules = [
        Rule(harm, "PUT", f"/totals{COMMIT}"),
        Rule(Harm.DROPPED, "GET|HEAD", r"/totals/_delta_log/0*2\.json"),
    ]
    before = corrected.heads()["totals"]
    fails = pytest.raises(SluiceError)
    with using(store.environ(proxied.endpoint)), proxied.harming(*rules), fails as failed:
        corrected.run(day(1))
    assert failed.value.exit_code == 3
    assert corrected.heads()["totals"] == before + landed
    corrected.run(day(1))
    corrected.check()
    assert {o.split()[1] for o in corrected.run(day(1))} == {"unchanged"}


@pytest.mark.usefixtures("impatient")
def test_bodies_always_cut_are_no_rows(shop: StoredShop, store: Store, proxied: Proxy) -> None:
    rule = Rule(Harm.CUT, "GET", r"landing/.*\.json$")
    fails = pytest.raises(SluiceError, match="does not answer as it should")
    with using(store.environ(proxied.endpoint)), proxied.harming(rule), fails as failed:
        shop.run(day(1))
    assert failed.value.exit_code == 3
    shop.run(day(1))
    shop.check()
    assert sum(shop.rows("sales__quarantine").values()) == 1


TEXTS = [
    ("Error performing GET http://h/b/k - Server returned 301 Moved Permanently", "region"),
    ("AWS Error UNKNOWN (HTTP status 400) ExceptionName: AuthorizationHeaderMalformed", "region"),
    ("Generic S3 error <Code>RequestTimeTooSkewed</Code>", "clock"),
    ("Generic S3 error <Code>ExpiredToken</Code>", "expired"),
    ("Generic S3 error <Code>QuotaExceeded</Code>", "no room"),
    ("Generic S3 error the credential provider was not enabled", "no credentials"),
    ("org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/': Bucket", "no bucket"),
    ("getFileStatus on s3://b/k: Forbidden (Service: S3, Status Code: 403, null)", "may not read"),
]


@pytest.mark.parametrize(("text", "word"), TEXTS, ids=[w for _, w in TEXTS])
def test_faults_of_other_servers_are_known_by_their_codes(text: str, word: str) -> None:
    fault = store_fault(OSError(text))
    assert isinstance(fault, StoreRefused)
    assert word in fault.message + fault.hint


def test_errors_of_other_things_keep_their_names() -> None:
    assert store_fault(ValueError("AccessDenied is a value of this column")) is None
    assert store_fault(OSError(f"{Path('x')}: no such file")) is None
