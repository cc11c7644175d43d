"""Transcripts of dialogues, judged: what was shown and said, round by round, and what that is worth.

`settings` names what a dialogue depends on, `transcript` is the file, `reading` reads files of strangers,
`openings` says how sessions begin and go on, `checking` finds what contradicts itself, `scoring` computes the
numbers, `report` shows them.
"""
