"""Dimensions: whole tables of reference data."""
