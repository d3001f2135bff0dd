"""Idioms of dbt's models, imported and run, give what duckdb gives."""

from dataclasses import replace
from pathlib import Path

from tests.dbt.warehouse import LANDED, MANIFEST, Warehouse, bag, done

import sluice
from sluice.cache import write_whole
from sluice.dbt import read_artifacts
from sluice.dbt.importing import text_of
from sluice.dbt.pipeline import Imported

DAY, NEXT = "2026-11-24", "2026-11-25"
IDIOMS = {
    "deduplicated": """select * exclude (n) from (
        select *, row_number() over (partition by customer_id order by ordered_at desc, id) as n
        from raw.orders) where n = 1""",
    "distinct_on": """select distinct on (customer_id) customer_id, id
        from raw.orders order by customer_id, ordered_at desc""",
    "weeks": "select date_trunc('week', ordered_at) as w, count(*) n from raw.orders group by 1",
    "filtered": """select customer_id, count(*) filter (where status = 'sold') s,
        count(case when status = 'baked' then 1 end) t from raw.orders group by all""",
    "newest": "select customer_id, arg_max(status, ordered_at) s from raw.orders group by 1",
    "running": """select id, sum(cents) over (partition by method order by id
        rows between unbounded preceding and current row) s from raw.payments""",
    "with_total": """select p.id, t.total from raw.payments p
        cross join (select sum(cents) total from raw.payments) t""",
    "together": "select id, 'a' as src from raw.orders union all select id, 'b' from raw.payments",
    "joined": """select o.id, c.name from raw.orders o
        left join raw.customers c on o.customer_id = c.id and c.city <> 'Bern'""",
    "cohorts": """with firsts as (
            select customer_id, min(ordered_at) f from raw.orders group by 1)
        select date_trunc('month', firsts.f)::date m, count(distinct o.customer_id) n
        from raw.orders o join firsts using (customer_id) group by 1""",
    "with_orders": """select id from raw.customers c
        where exists (select 1 from raw.orders o where o.customer_id = c.id)""",
    "without_orders": """select id from raw.customers
        where id not in (select customer_id from raw.orders where customer_id is not null)""",
    "first_three": "select * from raw.orders order by id limit 3",
    "alias_again": "select id, id * 2 as x, x + 1 as y from raw.orders",
    "ranked": """select id, r from (select id, rank() over (
        partition by customer_id order by ordered_at) r from raw.orders) where r <= 2""",
    "texts": """select id, trim(both ' ' from name) n, replace(name, 'a', 'b') r, length(name) l
        from raw.customers""",
    "firsts": """select id, first_value(status) over (
        partition by customer_id order by ordered_at, id) f from raw.orders""",
    "lengths": """select id, date_diff('month', signed_up, date '2024-03-01') m,
        date_diff('day', signed_up, date '2024-03-01') d from raw.customers""",
    "distinct_from": "select id from raw.orders where customer_id is distinct from 1",
}


def test_idioms_give_what_the_warehouse_gives(tmp_path: Path) -> None:
    project = read_artifacts(MANIFEST, MANIFEST.with_name("catalog.json"))
    orders = project.nodes["model.bakery.orders"]
    models = {
        name: replace(orders, id=name, name=name, relation=name, sql=sql, raw="", parents=())
        for name, sql in IDIOMS.items()
    }
    raw = {i: node for i, node in project.nodes.items() if node.type == "source"}
    project = replace(project, nodes={**raw, **models}, checks=())
    imported = Imported(project, "shop", lambda _: "", lambda _expectation, _columns: [])
    imported.add(models)
    assert {*imported.report.kept} == {*IDIOMS}, imported.report
    write_whole(tmp_path / "config" / "pipelines" / "shop.yaml", text_of(imported))
    warehouse = Warehouse()
    for table in LANDED:
        target = tmp_path / "landing" / table / DAY
        target.mkdir(parents=True)
        warehouse.db.execute(f"COPY raw.{table} TO '{target}/part.parquet'")
    said = done(tmp_path, "run", "shop", "--start", DAY, "--end", NEXT)
    assert "left to Spark" not in said
    lake = sluice.open(tmp_path / "config")
    answers = {n: bag(warehouse.db.sql(q).to_arrow_table().to_pylist()) for n, q in IDIOMS.items()}
    kept = {name: bag(lake.table(name).read()) for name in IDIOMS}
    assert {name: rows for name, rows in kept.items() if rows != answers[name]} == {}
