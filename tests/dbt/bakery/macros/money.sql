{% macro money(column) %}cast({{ column }} / 100.0 as decimal(16, 2)){% endmacro %}
