"""A dbt project as a pipeline: models become views, their inputs sources. Starts no Spark."""
