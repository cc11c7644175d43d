"""CIRCLED's construction: from a single-turn benchmark to consistent sessions of several turns.

Source: the CIRCLED paper, sections 3 to 5. The first search is that of the published query; then a user who
knows the target picks the best image that was shown, says what is still missing, and searches again, until
the target is shown. Filters keep the sessions that are consistent and repeat nothing.
"""
