"""`cir play`: a person as the user of a multi-round evaluation, in the terminal or on a page."""
