select * from {{ ref('monthly_sales') }} where sales < 0
