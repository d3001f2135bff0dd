"""Rules: expectations about rows, columns and batches, as printable Spark SQL."""
