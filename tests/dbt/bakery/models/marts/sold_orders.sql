{{ config(materialized='incremental', unique_key='order_id') }}
select order_id, customer_id, amount, ordered_at
from {{ ref('orders') }}
where status = 'sold'
{% if is_incremental() %}
  and ordered_at > (select max(ordered_at) from {{ this }})
{% endif %}
