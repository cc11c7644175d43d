"""`cir play`: a person as the user of a multi-round evaluation, on a page of this machine."""
