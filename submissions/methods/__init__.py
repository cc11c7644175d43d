"""Methods, one file each, and the registry that knows them by name.

There are three kinds, all small. A `Scorer` needs no weights: it gives every image of the gallery a score for
every turn (`submissions.methods.random`, `submissions.methods.pixels`). A `Composer` works in the space
of an encoder: it turns reference and caption into one query vector. Neither orders images
(`cir_metrics.ranking` and `cir_metrics.gallery` alone do that), nor sees to turns, subsets and removed
references (`submissions.running.make`). A `Ranker`, of a user's own, orders images itself.
"""

from typing import Any

import lazy_loader

_attach, _dir, _own = lazy_loader.attach_stub(__name__, __file__)
_ABOVE = frozenset({"Method", "baselines", "make_bundle", "make_rank_file", "run_baselines"})
"""Names of `submissions` that were first documented as being here."""

__all__ = [*_own, *_ABOVE]


def __getattr__(name: str) -> Any:
    if name in _ABOVE:
        import submissions

        return getattr(submissions, name)
    return _attach(name)


def __dir__() -> list[str]:
    return sorted(__all__)
