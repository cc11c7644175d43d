"""How the encoder that comes with the package was trained: see `cir train shapes`."""

from __future__ import annotations
