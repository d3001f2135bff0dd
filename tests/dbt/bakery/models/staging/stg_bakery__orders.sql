-- The CTE has the name of the table that it reads, as in many projects.
with orders as (
    select * from {{ source('raw', 'orders') }}
)
select id as order_id, customer_id, status, ordered_at::timestamp as ordered_at
from orders
where status is distinct from 'test'
