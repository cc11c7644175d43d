"""The app file of a Space, in a file of its own: Spaces start it by name, beside the packages."""

import os
import sys

if __name__ == "__main__":
    # Whoever reaches a Space is not the one person who runs it.
    accounts = "oauth" if os.environ.get("OAUTH_CLIENT_ID") else "tokens"
    os.environ.setdefault("CIR_LEADERBOARD_ACCOUNTS", accounts)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    if os.access("/data", os.W_OK):  # persistent storage, where the Space has it
        os.environ.setdefault("CIR_LEADERBOARD_HOME", "/data/leaderboard")
        os.environ.setdefault("CIR_CACHE_HOME", "/data/cache")
    if host := os.environ.get("SPACE_HOST", "").partition(",")[0]:
        os.environ.setdefault("CIR_LEADERBOARD_URL", f"https://{host}/full")

    from cir_datasets.common.terminal import echo
    from cir_metrics.errors import CirError
    from leaderboard.space.front import run

    try:
        port = int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
        run("0.0.0.0", port, lambda words: echo(words, err=True))
    except CirError as error:
        sys.exit(f"cir: {error}")
