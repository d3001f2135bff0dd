"""What a change is, as pure functions of DataFrames: nothing here opens a table or collects."""
