"""How a process that scores gets and returns memory: set once, at its start."""

from __future__ import annotations

import ctypes
import os
import sys

_M_MMAP_THRESHOLD = -3
"""mallopt(3)'s number for the size from which a block is the system's own."""
_BLOCK = 2**18
"""Bytes."""


def give_back_freed_memory() -> None:
    """Make what is freed go back to the system: scoring a large file then takes half the memory.

    Arrow's own allocators keep what was freed, and so does glibc after the first large block: it takes
    the next ones from its heap, where holes are not given back. Call this before pyarrow is imported;
    elsewhere than on Linux only Arrow's part is set.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # musl has none
            mallopt(_M_MMAP_THRESHOLD, _BLOCK)
