with c as (select * from {{ ref('stg_bakery__customers') }}),
totals as (
    select
        customer_id,
        min(ordered_at) as first_order,
        max(ordered_at) as last_order,
        count(*) as orders,
        sum(amount) as spent
    from {{ ref('orders') }}
    group by customer_id
)
select c.customer_id, c.customer, r.region, t.first_order, t.last_order,
    coalesce(t.orders, 0) as orders, t.spent
from c
left join totals as t on c.customer_id = t.customer_id
left join {{ ref('cities') }} as r on c.city = r.city
