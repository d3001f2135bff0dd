select region, customer_id, customer, spent
from {{ ref('customers') }}
where spent is not null
qualify row_number() over (partition by region order by spent desc, customer_id) <= 2
