"""What has another name in some of the versions of Airflow that are allowed."""

from airflow.serialization import serialized_objects

# Airflow 3.1 has one class for both.
DagSerialization = getattr(serialized_objects, "DagSerialization", serialized_objects.SerializedDAG)
