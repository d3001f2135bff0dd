"""Kafka's client: connections, messages, and places in a topic."""
