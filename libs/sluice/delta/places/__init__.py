"""Places: the folders of tables, the files below a folder, and small files beside the tables."""
