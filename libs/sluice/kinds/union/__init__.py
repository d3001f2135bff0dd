"""Union: the rows of several tables in one."""
