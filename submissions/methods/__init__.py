"""Methods, one file each, and the registry that knows them by name.

There are three kinds, all small. A `Scorer` needs no weights: it gives every image of the gallery a score for
every question (`submissions.methods.random`, `submissions.methods.pixels`). A `Composer` works in the space
of an encoder: it turns reference and caption into one query vector. Neither orders images
(`cir_metrics.ranking` and `cir_metrics.gallery` alone do that), nor sees to turns, subsets and removed
references (`submissions.running.make`). A `Ranker`, of a user's own, orders images itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submissions.methods.asking import Ask as Ask
    from submissions.methods.asking import Gallery as Gallery
    from submissions.methods.card import method_card as method_card
    from submissions.methods.card import method_cards as method_cards
    from submissions.methods.composing import Composer as Composer
    from submissions.methods.composing import Context as Context
    from submissions.methods.registry import composer as composer
    from submissions.methods.registry import method_names as method_names
    from submissions.methods.registry import methods_for as methods_for
    from submissions.methods.registry import scorer as scorer
    from submissions.rank_file.model import Method as Method
    from submissions.running.baselines import baselines as baselines
    from submissions.running.baselines import run_baselines as run_baselines
    from submissions.running.by_lists import Ranker as Ranker
    from submissions.running.by_scores import Scorer as Scorer
    from submissions.running.make import make_bundle as make_bundle
    from submissions.running.make import make_rank_file as make_rank_file

_HOMES = {
    "Ask": "submissions.methods.asking",
    "Composer": "submissions.methods.composing",
    "Context": "submissions.methods.composing",
    "Gallery": "submissions.methods.asking",
    "Method": "submissions.rank_file.model",
    "Ranker": "submissions.running.by_lists",
    "baselines": "submissions.running.baselines",
    "method_card": "submissions.methods.card",
    "method_cards": "submissions.methods.card",
    "run_baselines": "submissions.running.baselines",
    "Scorer": "submissions.running.by_scores",
    "composer": "submissions.methods.registry",
    "make_bundle": "submissions.running.make",
    "make_rank_file": "submissions.running.make",
    "method_names": "submissions.methods.registry",
    "methods_for": "submissions.methods.registry",
    "scorer": "submissions.methods.registry",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
