"""One Airflow DAG for each pipeline in config/."""

from sluice.airflow.blueprint import config_folder
from sluice.airflow.dag_factory import dags

for dag in dags(config_folder(__file__)):
    globals()[dag.dag_id] = dag
