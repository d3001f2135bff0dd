"""Computing: a batch's rows, from changes of the inputs to changes of the table."""
