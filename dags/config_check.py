"""Report mistakes in config/ as this file's import error in Airflow; other pipelines keep running.

Makes no DAG of its own.
"""

from sluice.airflow.blueprint import check, config_folder

check(config_folder(__file__))
