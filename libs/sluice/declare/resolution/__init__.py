"""Resolution of declarations to tables: derives columns, keys and types, and checks names.

Resolution never stops at a mistake: it notes the mistake and derives what it can. So one wrong name
is not reported again for every view behind it.
"""
