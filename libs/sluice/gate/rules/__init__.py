"""Rules: what each expectation asks of rows, columns and batches, as printable Spark SQL."""
