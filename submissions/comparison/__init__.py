"""Methods side by side on one benchmark: which differences are more than chance, and on which queries.

`submissions.compare` and `cir compare` start in `comparing`; `keys` refuses numbers that are not comparable,
`result` holds what was found and puts it into tables. Transcripts are compared by `submissions.transcripts`.
"""
