"""A dbt project becomes a pipeline whose tables equal those that dbt computes."""

import json
from pathlib import Path

from ruamel.yaml import YAML
from tests.dbt.warehouse import BAKERY, MANIFEST, Warehouse, bag, changed, command, done

import sluice

KEPT = {  # model -> its view; parents first
    "stg_bakery__customers": "stg_bakery_customers",
    "stg_bakery__orders": "stg_bakery_orders",
    "orders": "orders",
    "sold_orders": "sold_orders",
    "customers": "customers",
    "order_gaps": "order_gaps",
    "best_customers": "best_customers",
    "monthly_sales": "monthly_sales",
}
FIRST, SECOND = ("2026-11-24", "2026-11-25"), ("2026-11-25", "2026-11-26")


def imported(folder: Path, *words: str) -> str:
    return done(folder, "import", "dbt", str(MANIFEST), *words)


def declared(folder: Path) -> dict[str, dict[str, dict[str, object]]]:
    text = (folder / "config" / "pipelines" / "bakery.yaml").read_text("utf-8")
    return YAML(typ="safe").load(text)  # type: ignore[no-any-return]


def differing(folder: Path, warehouse: Warehouse) -> list[str]:
    lake = sluice.open(folder / "config")
    kept = {m: bag(lake.table(v).read()) for m, v in KEPT.items()}
    return [model for model, rows in kept.items() if rows != warehouse.rows(model)]


def test_the_tables_equal_those_of_dbt_also_after_changes(tmp_path: Path) -> None:
    imported(tmp_path, "--select", " ".join(KEPT))
    assert "no mistakes" in done(tmp_path, "validate")
    warehouse = Warehouse()
    warehouse.land(tmp_path, FIRST[0])
    warehouse.build(*KEPT)
    run = ("run", "bakery", "--start", FIRST[0], "--end", SECOND[1])
    done(tmp_path, *run)
    assert differing(tmp_path, warehouse) == []

    warehouse.db.execute("UPDATE raw.orders SET status = 'sold', customer_id = 1 WHERE id = 14")
    warehouse.db.execute("INSERT INTO raw.orders VALUES (20, 5, 'sold', '2024-03-09 23:59:59')")
    warehouse.db.execute("DELETE FROM raw.payments WHERE id = 103")
    warehouse.db.execute("UPDATE raw.payments SET cents = 7001 WHERE id = 102")
    warehouse.db.execute("INSERT INTO raw.payments VALUES (120, 20, 'card', 333)")
    warehouse.land(tmp_path, FIRST[0], "id < 14 OR id BETWEEN 100 AND 119")
    warehouse.land(tmp_path, SECOND[0], "id BETWEEN 14 AND 99 OR id > 119")
    done(tmp_path, *run)
    assert differing(tmp_path, warehouse) == []


def test_the_report_names_what_became_of_each_model_and_test(tmp_path: Path) -> None:
    said = imported(tmp_path)
    assert "5 sources, 1 dimension, 11 views" in said
    assert "kept incrementally (9): stg_bakery_customers, stg_bakery_orders," in said
    assert "inlined, because dbt keeps no table (1): stg_payments" in said
    assert "price_bands: line 6: a join without an equality between the two sides" in said
    assert "fresh_orders: 'CURRENT_DATE': the time of running is not allowed" in said
    assert "customers_snapshot: a snapshot, whose history only dbt has" in said
    assert "scores: a model in Python" in said
    assert "by_city: an analysis, which builds no table" in said
    assert "customers_snapshot: snapshot main.customers_snapshot, from landing/" in said
    assert "model main.stg_bakery__orders: stg_bakery_orders" in said
    assert "tests: 9 expectations, 6 kept by keys" in said
    assert "between_ends_customers_orders__100__0: Sluice has no expectation like it" in said
    assert "no_negative_sales: it is a test with its own query" in said
    assert "no mistakes" in done(tmp_path, "validate")


def test_tests_become_expectations_and_a_view_of_orphans(tmp_path: Path) -> None:
    imported(tmp_path)
    views = declared(tmp_path)["views"]
    assert views["orders"]["expect"] == [
        {
            "type": "expect_column_values_to_be_in_set",
            "column": "status",
            "value_set": ["placed", "baked", "sold", "returned"],
            "on_failure": "warn",
        },
        {
            "type": "expect_column_values_to_not_be_null",
            "column": "order_id",
            "on_failure": "stop",
        },
        {"type": "expect_column_values_to_be_unique", "column": "order_id", "over": "table"},
    ]
    (stop,) = views["orders_customer_id_not_in_customers"]["expect"]  # type: ignore[misc]
    assert (stop["max_value"], stop["on_failure"]) == (0, "stop")  # type: ignore[index]
    assert views["customers"]["expect"][0]["value_set"] == [0, 1, 2, 3]  # type: ignore[index]


def test_an_orphan_stops_the_run_of_its_view_with_the_rows_that_break_the_rule(
    tmp_path: Path,
) -> None:
    imported(tmp_path, "--select", "+orders stg_bakery__customers customers")
    warehouse = Warehouse()
    warehouse.db.execute("DELETE FROM raw.customers WHERE id = 4")
    warehouse.land(tmp_path, FIRST[0])
    ended = command(tmp_path, "run", "bakery", "--start", FIRST[0], "--end", FIRST[1])
    assert ended.exit_code == 4
    assert "orders_customer_id_not_in_customers" in ended.output
    warehouse.db.execute("INSERT INTO raw.customers VALUES (4, 'Dan', 'Chur', '2024-02-11')")
    warehouse.land(tmp_path, FIRST[0])
    done(tmp_path, "run", "bakery", "--start", FIRST[0], "--end", FIRST[1])


def test_a_key_that_dbt_tests_is_the_sources_and_makes_a_seed_a_dimension(tmp_path: Path) -> None:
    imported(tmp_path)
    found = declared(tmp_path)
    orders, cities = found["sources"]["raw_orders"], found["dimensions"]["cities"]
    assert orders["key"] == ["id"]
    assert orders["schema"] == "id BIGINT, customer_id BIGINT, status STRING, ordered_at TIMESTAMP"
    assert (tmp_path / str(cities["path"])).resolve() == BAKERY / "seeds" / "cities.csv"
    assert "key" not in found["sources"]["bands"]


def test_a_column_that_can_not_be_declared_gets_a_name_everywhere(tmp_path: Path) -> None:
    sql = 'select id, "_Status" as "_Status", ordered_at from "bakery"."raw"."orders"'
    manifest = changed(tmp_path, stg_bakery__orders={"compiled_code": sql})
    catalog = tmp_path / "target" / "catalog.json"
    known = json.loads(catalog.read_text("utf-8"))
    columns = known["sources"]["source.bakery.raw.orders"]["columns"]
    columns["_Status"] = {**columns.pop("status"), "name": "_Status"}
    catalog.write_text(json.dumps(known))
    done(tmp_path, "import", "dbt", manifest, "--select", "stg_bakery__orders")
    assert "no mistakes" in done(tmp_path, "validate")
    found = declared(tmp_path)
    orders = found["sources"]["raw_orders"]
    assert orders["names"] == {"status_2": "_Status"}
    assert "status_2 STRING" in str(orders["schema"])
    assert "status_2 AS status_2" in str(found["views"]["stg_bakery_orders"]["sql"])


def test_a_model_that_is_not_chosen_is_delivered_to_those_that_read_it(tmp_path: Path) -> None:
    said = imported(tmp_path, "--select", "customers")
    assert "orders: model main.orders, from landing/orders/" in said
    views = declared(tmp_path)["views"]
    assert [*views] == ["customers", "orders_customer_id_not_in_customers"]
    assert declared(tmp_path)["sources"]["orders"]["key"] == ["order_id"]


def test_validate_explains_how_to_fill_what_is_not_known(tmp_path: Path) -> None:
    manifest = changed(tmp_path)
    (tmp_path / "target" / "catalog.json").unlink()
    said = done(tmp_path, "import", "dbt", manifest, "--select", "stg_bakery__orders")
    assert "stg_bakery_orders: the columns of raw_orders aren't known" in said
    assert "next: fill in the `?`" in said
    schema = declared(tmp_path)["sources"]["raw_orders"]["schema"]
    assert schema == "id ?, status ?"
    result = command(tmp_path, "validate").output
    assert "'id ?': the type of id was not known: write it here, e.g. 'id BIGINT'" in result
    file = tmp_path / "config" / "pipelines" / "bakery.yaml"
    file.write_text(file.read_text().replace("id ?, status ?", "'?'"))
    assert "'?' stands for columns that were not known" in command(tmp_path, "validate").output
    types = "id BIGINT, customer_id BIGINT, status STRING, ordered_at TIMESTAMP"
    file.write_text(file.read_text().replace("'?'", types))
    assert "no mistakes" in done(tmp_path, "validate")


def test_a_model_compiled_for_an_incremental_run_is_left_out(tmp_path: Path) -> None:
    own = 'select * from "bakery"."main"."orders" where ordered_at > (select max(ordered_at) from '
    manifest = changed(
        tmp_path, sold_orders={"compiled_code": own + '"bakery"."main"."sold_orders")'}
    )
    said = done(tmp_path, "import", "dbt", manifest)
    assert "sold_orders: it reads its own table" in said
    assert "sold_orders: model main.sold_orders, from landing/sold_orders/" in said


def test_a_model_that_can_not_be_read_does_not_hinder_the_others(tmp_path: Path) -> None:
    manifest = changed(
        tmp_path,
        orders={"compiled_code": "select a\nfrom t where ("},
        sold_orders={"compiled_code": ""},
        order_gaps={"compiled_code": "select * from elsewhere.t"},
        price_bands={"compiled_code": 'select \'${HOME}\' as h from "bakery"."main"."bands"'},
    )
    said = done(tmp_path, "import", "dbt", manifest)
    assert "orders: its SQL can't be read as duckdb: line 2: " in said
    assert "sold_orders: the manifest has no compiled SQL of it" in said
    assert "order_gaps: it reads 'elsewhere.t', which dbt doesn't know" in said
    assert "price_bands: '${HOME}' in its SQL would be read from the environment" in said
    assert "no mistakes" in done(tmp_path, "validate")


def test_a_model_that_is_left_out_hides_no_mistake_of_those_that_read_it(tmp_path: Path) -> None:
    manifest = changed(tmp_path, stg_bakery__orders={"compiled_code": "select ("})
    (tmp_path / "target" / "catalog.json").unlink()
    said = done(tmp_path, "import", "dbt", manifest)
    assert "stg_bakery__orders: its SQL can't be read" in said
    assert "checked in part (8):" in said
    assert "order_gaps: the columns of orders aren't known" in said
    assert "price_bands: line 6: a join without an equality between the two sides" in said
    assert "fresh_orders: 'CURRENT_DATE': the time of running is not allowed" in said


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    imported(tmp_path, "--select", "customers")
    file = tmp_path / "config" / "pipelines" / "bakery.yaml"
    before = file.read_text()
    refusal = command(tmp_path, "import", "dbt", str(MANIFEST))
    assert (refusal.exit_code, file.read_text()) == (2, before)
    assert "exists already" in refusal.output
    imported(tmp_path, "--pipeline", "other")
    assert "pipeline: other" in (file.parent / "other.yaml").read_text()
    imported(tmp_path, "--force")
    assert file.read_text() != before
    assert sorted(f.name for f in file.parent.iterdir()) == ["bakery.yaml", "other.yaml"]


def test_the_manifest_names_no_machine() -> None:
    for name in ("manifest.json", "catalog.json"):
        text = (BAKERY / name).read_text("utf-8")
        assert "/tmp/" not in text
        assert "root_path" not in json.loads(text)
