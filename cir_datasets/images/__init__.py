"""Where pictures lie, which are missing, and what they hash to."""
