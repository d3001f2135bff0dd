"""Places: where tables lie, the files below a folder, and small files beside the tables."""
