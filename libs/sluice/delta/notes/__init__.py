"""Notes: small tables that Sluice keeps for itself."""
