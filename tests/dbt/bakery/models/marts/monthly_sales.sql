{{ config(tags=['finance']) }}
with sold_orders as (
    select * from {{ ref('sold_orders') }}
)
select
    date_trunc('month', ordered_at)::date as month,
    count(distinct customer_id) as customers,
    sum(amount) as sales
from sold_orders
group by 1
having sum(amount) > 0
order by month
