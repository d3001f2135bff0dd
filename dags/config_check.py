"""Mistakes in config/, shown by Airflow as this file's import error; the other pipelines run on.

Makes no DAG of its own.
"""

from sluice.orchestration.projects import check, config_folder

check(config_folder(__file__))
