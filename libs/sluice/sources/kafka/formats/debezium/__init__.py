"""Changes in envelopes of Debezium, of any format."""
