"""One Airflow DAG for each pipeline in config/."""

from sluice.airflow.dag_factory import dags
from sluice.airflow.projects import config_folder

for dag in dags(config_folder(__file__)):
    globals()[dag.dag_id] = dag
