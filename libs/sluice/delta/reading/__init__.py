"""Reading: tables at exactly one version, by Spark or in this process, and listed deliveries."""
