"""Kafka topics as sources: a batch is a delivery, and its offsets are in the commit."""
