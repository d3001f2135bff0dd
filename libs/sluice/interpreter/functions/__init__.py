"""Functions of rows, by their names in Spark."""
