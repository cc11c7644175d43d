"""WHO IS BEST: the leaderboard server, its boards and pages, and the `cir` command."""
