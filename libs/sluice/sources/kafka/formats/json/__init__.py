"""Messages of JSON."""
