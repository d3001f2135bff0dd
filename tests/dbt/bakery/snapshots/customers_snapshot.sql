{% snapshot customers_snapshot %}
{{ config(target_schema='main', unique_key='id', strategy='check', check_cols=['city']) }}
select id, city from {{ source('raw', 'customers') }}
{% endsnapshot %}
