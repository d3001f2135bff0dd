"""The pipelines of config/, each as a DAG for Airflow."""

from sluice.orchestration.dag_factory import dags
from sluice.orchestration.projects import config_folder

for dag in dags(config_folder(__file__)):
    globals()[dag.dag_id] = dag
