"""Pages that people read in a browser: what they show, their templates, their one style."""
