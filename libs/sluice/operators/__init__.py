"""Changes in, changes out: what each kind of view does, as pure functions of DataFrames."""
