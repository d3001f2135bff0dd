{% macro raw_tables() %}
{% for table in ["customers", "orders", "payments"] %}
create or replace table {{ target.database }}.raw.{{ table }} as
  select * from read_csv('raw/{{ table }}.csv', header = true);
{% endfor %}
{% endmacro %}
