"""Text of a configuration: YAML with its lines, and mistakes at their places."""
