"""The upkeep of all tables, as a DAG for Airflow."""

from sluice.orchestration.dag_factory import maintenance
from sluice.orchestration.projects import config_folder

dag = maintenance(config_folder(__file__))
