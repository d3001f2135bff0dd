-- A join by a range: no equality ties the two sides.
select o.order_id, b.band
from {{ ref('orders') }} as o
join {{ ref('bands') }} as b on o.amount >= b.lowest and o.amount < b.highest
