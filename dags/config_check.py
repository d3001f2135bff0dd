"""Mistakes in config/, shown by Airflow as this file's import error; the other pipelines run on.

Makes no DAG of its own.
"""

from sluice.orchestration.blueprint import check
from sluice.orchestration.projects import config_folder

check(config_folder(__file__))
