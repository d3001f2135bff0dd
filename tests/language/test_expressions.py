"""Scalar expressions: what is let through, unchanged, and what is known of it."""

import pytest
from tests.language.examples import COLUMNS, EXAMPLES

from sluice.language.expression import Expression, Named, SortKey
from sluice.language.inference import infer
from sluice.language.syntax import SCALAR


@pytest.mark.parametrize(("text", "of_spark"), EXAMPLES)
def test_an_allowed_expression_comes_out_the_same_twice_and_its_type_is_sparks_or_unknown(
    text: str, of_spark: str
) -> None:
    expression = Expression.parse(text)
    assert Expression.parse(expression.sql).sql == expression.sql
    assert expression.columns <= {*COLUMNS, "st.x", "st.y"}
    assert infer(expression, COLUMNS, {}) in ("", of_spark)


def test_every_allowed_function_has_an_example() -> None:
    text = " ".join(example[0] for example in EXAMPLES)
    assert [name for name in SCALAR if f"{name}(" not in text] == []


def test_functions_keep_the_name_that_was_written() -> None:
    assert Expression.parse("nvl(a, b)").sql == "NVL(a, b)"
    assert Expression.parse("mod(a, 2)").sql == "MOD(a, 2)"
    assert Expression.parse("to_date(s)").sql == "TO_DATE(s)"


def test_an_interval_of_several_units_stays_one() -> None:
    sql = "at - (INTERVAL '1' DAY + (INTERVAL '2' HOURS + INTERVAL '3' MILLISECONDS))"
    assert Expression.parse("at - interval 1 day 2 hours 3 milliseconds").sql == sql


def test_columns_are_named_with_their_table_and_in_lower_case() -> None:
    expression = Expression.parse("products.Price * Quantity")
    assert expression.columns == {"products.price", "quantity"}
    assert expression.sql == "products.price * quantity"


def test_lambda_variables_and_date_parts_are_no_columns() -> None:
    assert Expression.parse("transform(xs, x -> x + y)").columns == {"xs", "y"}
    assert Expression.parse("aggregate(xs, 0, (acc, x) -> acc + x)").columns == {"xs"}
    assert Expression.parse("timestampdiff(day, a, b)").columns == {"a", "b"}


def test_a_structs_field_reads_its_column() -> None:
    expression = Expression.parse("address.city || name")
    assert expression.reads({"address", "name"}) == {"address", "name"}


def test_a_plain_column_is_distinguished_from_an_expression() -> None:
    assert Expression.parse("price").plain_column == "price"
    assert Expression.parse("products.price").plain_column == "products.price"
    assert Expression.parse("price + 1").plain_column is None
    assert Expression.parse("1").plain_column is None


def test_yaml_numbers_and_truths_are_expressions() -> None:
    assert Expression.model_validate(1).sql == "1"
    assert Expression.model_validate(True).sql == "TRUE"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("sales", "sales ASC NULLS FIRST"),
        ("sales desc", "sales DESC NULLS LAST"),
        ("sales asc nulls last", "sales ASC NULLS LAST"),
        ("price * quantity DESC NULLS FIRST", "price * quantity DESC NULLS FIRST"),
    ],
)
def test_a_sort_keys_nulls_are_where_spark_puts_them(text: str, sql: str) -> None:
    assert SortKey.parse(text).sql == sql


@pytest.mark.parametrize("text", ["a, b", "sum(a)", "a desc desc", "a desc; drop table x", ""])
def test_a_sort_key_is_one_expression(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SortKey.parse(text)


def test_a_named_expression_is_a_column_an_alias_or_a_mapping() -> None:
    assert Named.model_validate("department").is_plain
    assert Named.model_validate("upper(department) as d").name == "d"
    assert Named.model_validate({"name": "upper(department)"}).name == "name"
    with pytest.raises(ValueError, match=r"needs a name; write 'upper\(d\) as <name>'"):
        Named.model_validate("upper(d)")
