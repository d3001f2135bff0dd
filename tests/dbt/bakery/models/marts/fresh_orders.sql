select order_id from {{ ref('orders') }} where ordered_at > current_date - interval 30 day
