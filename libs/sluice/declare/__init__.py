"""Users' declarations: frozen models, loaded from YAML, with every mistake reported at its line.

`project.load(config)` returns a `Project`; its `graph` knows every table's columns, key and inputs.
"""
