"""Transcripts of dialogues, judged: the file, what contradicts itself in it, its numbers."""
