"""Messages of Avro, with a registry or without."""
