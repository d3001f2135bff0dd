"""A dbt project as a pipeline: views of its models, sources for what they read. Starts no Spark."""
