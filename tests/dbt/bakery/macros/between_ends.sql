{% test between_ends(model, column_name, low, high) %}
select * from {{ model }} where not {{ column_name }} between {{ low }} and {{ high }}
{% endtest %}
