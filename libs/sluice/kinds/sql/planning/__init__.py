"""Queries planned into a chain: names, joins, subqueries, a SELECT as a whole."""
