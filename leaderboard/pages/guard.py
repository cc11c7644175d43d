"""What Gradio must not do for strangers: read this machine's files, or fetch an address, on their word.

A client of Gradio's API may name any path or address where a page would name an uploaded file. Gradio checks
such paths only in applications that it launched itself; ours is mounted on FastAPI, so that the check has to
be switched on. Addresses it downloads; no page of ours wants that.
"""

from __future__ import annotations

from typing import Any, NoReturn

import gradio as gr

from leaderboard.errors import ServeError

_DOWNLOADERS = ("async_ssrf_protected_download", "ssrf_protected_download", "save_url_to_cache")


def shut_out_strangers(demo: Any) -> None:
    """Let the pages' components take uploaded files only.

    Args:
        demo: the pages' Blocks, complete.

    Raises:
        ServeError: this version of Gradio lacks what is switched here, so that nothing would be protected.
    """
    missing = [name for name in _DOWNLOADERS if not hasattr(gr.processing_utils, name)]
    if missing or not hasattr(demo, "has_launched"):
        raise ServeError(
            f"Gradio {gr.__version__} has no {', '.join(missing) or 'has_launched'}, so that its pages would "
            "read files of this machine for strangers. Fix: install the version of Gradio in constraints.txt."
        )
    demo.has_launched = True
    for name in _DOWNLOADERS:
        setattr(gr.processing_utils, name, _refuse)


def _refuse(address: str, *_: Any, **__: Any) -> NoReturn:
    raise gr.exceptions.InvalidPathError(f"{address[:200]!r} is an address; only uploaded files are taken.")
