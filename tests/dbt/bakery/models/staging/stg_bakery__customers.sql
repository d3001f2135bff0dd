with source as (
    select * from {{ source('raw', 'customers') }}
)
select id as customer_id, trim(name) as customer, lower(city) as city, signed_up
from source
