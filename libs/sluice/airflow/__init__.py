"""Airflow's DAGs, tasks and page. Tasks launch jobs; nothing here computes a row."""
