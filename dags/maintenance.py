"""Airflow DAGs that maintain and verify all tables."""

from sluice.airflow.blueprint import config_folder
from sluice.airflow.dag_factory import maintenance, verification

daily = maintenance(config_folder(__file__))
weekly = verification(config_folder(__file__))
