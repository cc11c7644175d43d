"""Multi-round evaluation: a method in dialogue with a simulated user (FISD, section 3.2).

Round 1 is the published query. As long as the target is not among the first k, the user looks at the best
image that was found, says what is to change, and that image with these words is the next query.

`models` is the method with its memory of earlier rounds, `users` says the words, `dialogue` is the loop,
`journal` keeps every round on disk. What a dialogue depends on, and the transcript that remains of it, lie in
`submissions.transcripts`, which judges it.
"""
