"""The leaderboard's pages, made with Gradio."""
