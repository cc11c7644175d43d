"""Transcripts of dialogues, judged: what was shown and said, round by round, and what that is worth.

`settings` names what a dialogue depends on, `transcript` is the file, `reading` reads files of strangers,
`openings` says how sessions begin, go on and end, `checking` finds what contradicts itself, `sessions` is
what is scored and reported as any sessions are, `comparing` finds the sessions that several have.
"""
