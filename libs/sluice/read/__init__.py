"""Tables read without Spark: by key, range, page, version and change."""
