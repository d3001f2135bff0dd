"""Projects of Spark's declarative pipelines, read as declarations of a pipeline."""
