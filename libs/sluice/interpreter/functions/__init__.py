"""Functions of rows, by the name that Spark gives them."""
