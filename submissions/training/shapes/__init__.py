"""How the encoder that comes with the package was trained: see `submissions.training.train_shapes`."""

from __future__ import annotations
