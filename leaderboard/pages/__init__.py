"""The leaderboard's pages: HTML from templates; on `/submit` Gradio takes the file."""
