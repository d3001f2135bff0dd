"""From what is declared to tables: columns, keys and types derived, names checked.

Resolution never stops at a mistake: it notes it and derives what it can, so that one wrong name
does not cast doubt on the views behind it.
"""
