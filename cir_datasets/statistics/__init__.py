"""What a benchmark looks like in numbers: rows, turns, galleries, and the language of its captions.

`words` cuts captions into words, `tagging` gives each its part of speech, `measuring` puts the numbers of one
benchmark together, `tables` and `plots` show them. The tables have the form of CIRCLED's Tables 2 and 4 and
of CIRR's Table 2.
"""
