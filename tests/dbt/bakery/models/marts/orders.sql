{% set methods = ['card', 'cash', 'voucher'] %}
with paid as (
    select
        order_id,
        {% for method in methods -%}
        sum(case when method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
        {% endfor -%}
        sum(amount) as amount
    from {{ ref('stg_payments') }}
    group by 1
)
select
    o.order_id, o.customer_id, o.status, o.ordered_at,
    {% for method in methods %}p.{{ method }}_amount, {% endfor %}
    coalesce(p.amount, 0) as amount
from {{ ref('stg_bakery__orders') }} as o
left join paid as p using (order_id)
