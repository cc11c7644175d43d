"""The leaderboard as a Space of the Hugging Face Hub: its two files, and what puts it together."""
