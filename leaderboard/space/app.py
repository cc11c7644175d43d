"""The app file of a Space, in a file of its own: Spaces start it by name, beside the packages."""

import os
import sys

if __name__ == "__main__":
    # Whoever reaches a Space is not the one person who runs it.
    accounts = "oauth" if os.environ.get("OAUTH_CLIENT_ID") else "tokens"
    os.environ.setdefault("CIR_LEADERBOARD_ACCOUNTS", accounts)
    if os.access("/data", os.W_OK):  # persistent storage, where the Space has it
        os.environ.setdefault("CIR_LEADERBOARD_HOME", "/data/leaderboard")
        os.environ.setdefault("CIR_CACHE_HOME", "/data/cache")
    port = os.environ.get("GRADIO_SERVER_PORT", "7860")
    command = ["-m", "leaderboard.cli", "leaderboard", "serve", "--host", "0.0.0.0", "--port", port]
    os.execv(sys.executable, [sys.executable, *command])
