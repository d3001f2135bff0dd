"""Pure functions of DataFrames that compute changes; nothing here opens a table or collects."""
