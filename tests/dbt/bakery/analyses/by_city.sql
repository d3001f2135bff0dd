select city, count(*) from {{ ref('stg_bakery__customers') }} group by 1
