"""The page in Airflow that shows the tables of a project."""
