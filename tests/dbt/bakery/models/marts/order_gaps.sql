select
    order_id, customer_id,
    lag(order_id) over (partition by customer_id order by ordered_at, order_id) as previous_order,
    date_diff('day', lag(ordered_at) over (partition by customer_id order by ordered_at, order_id), ordered_at) as days
from {{ ref('orders') }}
