"""The first files of a project, made from data that is there. Nothing here starts Spark."""
