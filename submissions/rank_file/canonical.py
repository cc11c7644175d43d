"""What makes two rank files the same answer, in a file of its own: others must be able to compute it again.

The hash is sha256 over netstrings (the number of bytes in decimal digits, `:`, the bytes, `,`), numbers
written as their decimal digits and texts in UTF-8:

1. the benchmark's id;
2. for `rankings`, and then for `subset_rankings` where the file has them: that word and the number of
   queries; of each query, sorted by the bytes of its id, the id, the number of its rankings (one, or of a
   session one a turn), and of each ranking the number of images and their ids, best first.

Of a bundle it is sha256 over the netstrings of the suite's id, the number of rank files and, sorted by
benchmark id, the hash (hex) of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from submissions.rank_file.model import RankBundle, RankFile


def canonical_hash(rank_file: RankFile | RankBundle) -> str:
    """sha256 (hex) of a file's rankings, whatever form, order of keys or method block it came with.

    Two files have the same hash when they answer the same queries of the same benchmarks with the same images
    in the same order.

    Args:
        rank_file: a rank file or a bundle that validation found no error in.

    Example:
        >>> from submissions import Method, RankFile
        >>> one = RankFile("toy", 1, Method(name="one"), {"q1": ["a", "b"], "q2": ["b"]})
        >>> two = RankFile("toy", 1, Method(name="two"), {"q2": ["b"], "q1": ["a", "b"]})
        >>> canonical_hash(one) == canonical_hash(two)
        True
    """
    if isinstance(rank_file, RankBundle):
        runs = sorted(rank_file.runs, key=lambda run: run.benchmark.encode())
        parts = (_netstring(canonical_hash(run)) for run in runs)
        head = _netstring(rank_file.suite) + _netstring(len(runs))
        return hashlib.sha256(head + b"".join(parts)).hexdigest()
    digest = hashlib.sha256(_netstring(rank_file.benchmark))
    for section, answers in rank_file.sections().items():
        digest.update(_netstring(section) + _netstring(len(answers)))
        for part in _answers(answers):
            digest.update(part)
    return digest.hexdigest()


def _answers(answers: Mapping[str, Any]) -> Iterator[bytes]:
    """The netstrings of each query's answer."""
    known: dict[str, bytes] = {}
    for query in sorted(answers):
        answer = answers[query]
        turns = answer if answer and not isinstance(answer[0], str) else [answer]
        yield _netstring(query) + _netstring(len(turns))
        for ranking in turns:
            yield _netstring(len(ranking))
            for image in ranking:
                yield known.get(image) or known.setdefault(image, _netstring(image))


def _netstring(value: str | int) -> bytes:
    content = str(value).encode()
    return b"%d:%s," % (len(content), content)
