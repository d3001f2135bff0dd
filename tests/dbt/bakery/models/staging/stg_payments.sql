{{ config(materialized='ephemeral') }}
select id as payment_id, order_id, method, {{ money('cents') }} as amount
from {{ source('raw', 'payments') }}
