"""The leaderboard's pages: HTML from templates."""
