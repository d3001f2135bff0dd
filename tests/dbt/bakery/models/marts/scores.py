def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("customers").project("customer_id, spent * 2 as score")
