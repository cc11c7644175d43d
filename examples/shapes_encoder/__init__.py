"""How the encoder that comes with the package was trained: see `python -m examples.shapes_encoder`."""

from __future__ import annotations
