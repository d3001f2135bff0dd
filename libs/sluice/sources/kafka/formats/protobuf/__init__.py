"""Messages of protobuf."""
