"""A kind of source for one test: files that somebody has marked."""
