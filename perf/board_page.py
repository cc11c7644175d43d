"""How long a reader waits for the page of a long board: at the server, on the wire, and in a browser.

    python perf/board_page.py                                   # 1,000 entries
    python perf/board_page.py --entries 100 --requests 20       # a quick look

A server in a process of its own holds a board of --entries entries, each with values a query. One reader asks
--requests times for each task, by gzip, over a connection that stays open.

    same      the page as its address has it without choices
    others    each time another search, order or page, so that nothing that was kept for the last one helps
    unchanged the same, naming the ETag that it has: answered 304

Then Chromium opens the page --repeat times, each time with nothing kept of before, and in turn an empty page
of a bare server: from the beginning of the navigation to the frame behind the first row of the table, and
behind the empty page's one paragraph.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from board_api import BOARD, GZIP, ask, body_of, filled, server
from fresh import Verdict, add_bound_option, at_most

BOUNDS = {
    "same, p95 ms": at_most(100),
    "others, p95 ms": at_most(100),
    "page by gzip, kB": at_most(150),
    "first row in Chromium, median s": at_most(1),
}
FIRST_ROW = ".standings tbody tr"
EMPTY = b"<!doctype html><html lang=en><title>Empty</title><p>Nothing</p></html>"
_SEEN = """selector => {
    const look = () => document.querySelector(selector)
        ? requestAnimationFrame(() => setTimeout(() => { window.seen = performance.now(); }))
        : requestAnimationFrame(look);
    look();
}"""
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def choices(number: int) -> str:
    """Another choice of rows for each number."""
    every = (
        {"q": f"Method {number}"},
        {"sort": "recall@1", "page": str(number)},
        {"sort": "name", "q": str(number)},
        {"sort": "received", "order": "asc", "page": str(number)},
    )
    return urlencode(every[number % len(every)])


def alone(connection: http.client.HTTPConnection, paths: Sequence[str], tag: str = "") -> list[float]:
    """Seconds of one request after the other; each must be 200, or 304 where a tag is named."""
    headers = {**GZIP, "If-None-Match": tag} if tag else GZIP
    taken = []
    for path in paths:
        seconds, status, _, _ = ask(connection, path, headers)
        if status != (304 if tag else 200):
            raise SystemExit(f"{path}: answered {status}")
        taken.append(seconds)
    return taken


def p95(seconds: Sequence[float]) -> float:
    """In milliseconds."""
    return 1000 * sorted(seconds)[max(0, -(-len(seconds) * 95 // 100) - 1)]


@contextlib.contextmanager
def empty_page() -> Iterator[str]:
    """The address of a page with one paragraph."""

    class Nothing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(EMPTY)))
            self.end_headers()
            self.wfile.write(EMPTY)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    bare = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    thread = threading.Thread(target=bare.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bare.server_port}/"
    finally:
        bare.shutdown()
        thread.join()
        bare.server_close()


def seen(browser: Any, address: str, selector: str) -> float:
    """Seconds until something stands on the screen, in a browser that has nothing of before."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.add_init_script(f"({_SEEN})({selector!r})")
    page.goto(address)
    found = page.wait_for_function("window.seen").json_value()
    context.close()
    return float(found) / 1000


def in_browser(address: str, repeat: int) -> tuple[list[float], list[float]] | None:
    """Seconds to the first row and to the empty page's paragraph; None where there is no browser."""
    found = os.environ.get("CIR_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        return None
    rows, nothing = [], []
    with empty_page() as empty, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        seen(browser, empty, "p")  # the browser itself starts with its first page
        for _ in range(repeat):
            nothing.append(seen(browser, empty, "p"))
            rows.append(seen(browser, address, FIRST_ROW))
        browser.close()
    return rows, nothing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000, help="on the board")
    parser.add_argument("--requests", type=int, default=100, help="of each task")
    parser.add_argument("--repeat", type=int, default=7, help="times that the browser opens each page")
    add_bound_option(parser)
    options = parser.parse_args()
    verdict = Verdict(BOUNDS, options.bound)
    path = f"/b/{BOARD}"
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        filled(home, options.entries)
        with server(home) as (address, _):
            connection = http.client.HTTPConnection(address)
            first = ask(connection, path, GZIP)[0]
            while b'"groups_pending":true' in body_of(connection, f"/api/v1/boards/{BOARD}"):
                time.sleep(0.2)
            _, _, size, tag = ask(connection, path, GZIP)
            plain = ask(connection, path, {})[2]
            again = [path] * options.requests
            taken = {
                "same": alone(connection, again),
                "others": alone(connection, [f"{path}?{choices(one)}" for one in range(options.requests)]),
                "unchanged": alone(connection, again, tag),
            }
            connection.close()
            opened = in_browser(f"http://{address}{path}", options.repeat)
    print(f"{options.entries:,} entries, {options.requests} requests a task, {options.repeat} navigations")
    print(f"page: {plain:,} bytes, {size:,} by gzip; made for the first time in {first:.2f} s")
    print(f"{'task':24} {'median ms':>9} {'p95 ms':>8}")
    for task, seconds in taken.items():
        print(f"{task:24} {1000 * statistics.median(seconds):9.1f} {p95(seconds):8.1f}")
    if opened is None:
        print("Chromium or playwright is not installed: the first row was not timed")
        verdict.leave_out("first row in Chromium, median s")
    verdict.head()
    for task in ("same", "others"):
        verdict.show(f"{task}, p95 ms", p95(taken[task]))
    verdict.show("page by gzip, kB", size / 1000)
    if opened is not None:
        rows, nothing = opened
        verdict.show("first row in Chromium, median s", statistics.median(rows))
        verdict.note("empty page in Chromium, median s", statistics.median(nothing))
    verdict.end()


if __name__ == "__main__":
    main()
