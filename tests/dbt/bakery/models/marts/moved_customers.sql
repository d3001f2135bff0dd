select id as customer_id, count(*) as versions
from {{ ref('customers_snapshot') }}
group by id
having count(*) > 1
