"""Airflow DAGs that maintain and verify all tables."""

from sluice.airflow.dag_factory import maintenance, verification
from sluice.airflow.projects import config_folder

daily = maintenance(config_folder(__file__))
weekly = verification(config_folder(__file__))
