"""Definitions that differ from what tables were filled by, and what a change of them needs."""
