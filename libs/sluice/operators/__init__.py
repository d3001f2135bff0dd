"""Pure functions of DataFrames that compute each kind of view: changes in, changes out."""
