"""Resolution of declarations to tables: derives columns, keys and types, and checks names.

Resolution never stops at a mistake: it notes the mistake and derives what it can. One wrong name
therefore casts no doubt on the views behind it.
"""
