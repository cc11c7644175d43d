"""Shapes, the embedded benchmark: a small rendered world. Synthetic, and meant to be seen as such.

Pictures come from scene graphs, so that whatever a person or a model would be asked about them has an exact
answer: `describe` is the caption of a scene, `difference` the relative caption between two, `merge` the scene
that a relative caption makes of its reference. Everything is computed from nothing, in whole numbers, and is
the same on every machine. What the benchmark asks and how it was made stands in the `README.md` beside.
"""

from __future__ import annotations

import lazy_loader

# The names, and the modules that hold them, stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
