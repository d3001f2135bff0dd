"""A kind of view for one test: the rows of a table whose column is high enough."""
