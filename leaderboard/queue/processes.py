"""Workers as processes of their own beside the web process: started with it, started again when they die."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger("leaderboard.workers")

_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_STEADY_SECONDS = 60.0
"""A worker that lived so long was well: the pause before its next start is short again."""


class WorkerProcesses:
    """Keeps a number of workers running: `cir leaderboard work` of the same home.

    Args:
        home: the leaderboard's home.
        number: how many; 0 where they run elsewhere.
        paused: whether none may run now.
    """

    def __init__(self, home: Path, number: int, paused: Callable[[], bool] = lambda: False) -> None:
        """Remember them; nothing runs before `start`."""
        self._home = home
        self._number = number
        self._paused = paused
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the workers, and watch over them."""
        for place in range(self._number):
            thread = threading.Thread(target=self._keep_one, name=f"worker {place}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop the workers; what they judge at this moment is taken up at the next start."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _keep_one(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            if self._paused():
                self._stop.wait(_LOOK_SECONDS)
                continue
            began = time.monotonic()
            try:
                code = self._run_one()
            except OSError as error:
                code = f"could not be started: {error.strerror}"
            if self._stop.is_set() or self._paused():
                continue
            if time.monotonic() - began > _STEADY_SECONDS:
                pause = _FIRST_PAUSE
            log.error("a worker %s; the next starts in %.0f s", code, pause)
            self._stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _run_one(self) -> str:
        """Run one worker to its end.

        Returns:
            How it ended, in words.
        """
        command = [sys.executable, "-m", "leaderboard.cli", "leaderboard", "work"]
        command += ["--home", str(self._home), "--parent", str(os.getpid())]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while process.poll() is None and not self._stop.is_set() and not self._paused():
            self._stop.wait(_LOOK_SECONDS)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        code = process.returncode
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def live_no_longer_than(parent: int) -> None:
    """End this process by SIGTERM when its parent dies; at once where that is dead already.

    Args:
        parent: the parent's process id.
    """
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
