"""What became of the reference image, in words: of one score, and of several side by side.

Methods of one protocol may keep the reference or take it out, and that alone moves FashionIQ's Recall@10 by
whole points. What lists show is measured, what they cannot show is declared (`docs/signatures.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from cir_datasets.common.terminal import counted
from cir_metrics.catalogue import Signature
from cir_metrics.signature import shares_differ
from submissions.scoring.score_report import ScoreReport

FIX = 'Fix: write "reference": "kept" or "removed" into the method block of the rank file.'


def reference_notes(score: ScoreReport) -> tuple[str, ...]:
    """What a reader of one score must know of the reference; of a suite where its members differ.

    Args:
        score: of a rank file or a bundle.
    """
    if score.runs:
        return tuple(_differing(score.runs, [run.benchmark for run in score.runs]))
    signature = score.signature
    if signature.reference_held is None or signature.reference != "kept":
        return ()
    share = _share(signature)
    if signature.unverified:
        return (
            f"reference: unverified, ranked in {share}, and the file does not say whether it was kept. {FIX}",
        )
    return (f"reference: ranked in {share}; the protocol keeps it, and a list may hold it or leave it out.",)


def reference_warnings(scores: Sequence[ScoreReport], names: Sequence[str] = ()) -> tuple[str, ...]:
    """What sets numbers apart that stand side by side: unverified ones, and shares that differ tenfold.

    Args:
        scores: of methods on one benchmark or suite.
        names: what to call each; none are the methods' names.

    Returns:
        A sentence each; none where the lists give no reason to doubt.
    """
    lines: list[str] = []
    names = names or [score.method for score in scores]
    for score, name in zip(scores, names, strict=True):
        lines += _unverified(score, name)
        lines += _differing(score.runs, [f"{name} on {run.benchmark}" for run in score.runs])
    apart: list[str] = []
    for runs in zip(*(score.parts for score in scores), strict=True):
        where = f" on {runs[0].benchmark}" if scores[0].runs else ""
        apart += _differing(runs, [f"{name}{where}" for name in names])
    if apart:
        others = f" So it is on {counted(len(apart) - 1, 'other member')}." if len(apart) > 1 else ""
        lines.append(f"{apart[0]}{others}")
    return tuple(lines)


def reference_blocks(scores: Sequence[ScoreReport]) -> dict[str, list[int]]:
    """Places of the scores that may stand side by side, by what was ranked: the reference, which gallery.

    Args:
        scores: of methods on one benchmark or suite.

    Returns:
        By `kept`, `removed` and the like the places in `scores`, what most have first; of suites whose
        members differ by all of these, joined. What evidently ranked another gallery is apart.
    """
    blocks: dict[str, list[int]] = {}
    for place, score in enumerate(scores):
        signatures = [run.signature for run in score.parts]
        uses = " and ".join(dict.fromkeys(each.reference for each in signatures))
        others = dict.fromkeys(each.ranked for each in signatures if each.ranked)
        label = f"{uses}, ranked over {' and '.join(others)}" if others else uses
        blocks.setdefault(label, []).append(place)
    return dict(sorted(blocks.items(), key=lambda block: -len(block[1])))


def block_notes(
    scores: Sequence[ScoreReport], names: Sequence[str], blocks: Mapping[str, Sequence[int]]
) -> list[str]:
    """What a reader of a table must know of its blocks: why they are apart, and what differs inside them.

    Args:
        scores: of methods on one benchmark or suite.
        names: of each in the table.
        blocks: from `reference_blocks`.
    """
    notes = []
    if len(blocks) > 1:
        listed = [
            f"reference {use}: {', '.join(names[place] for place in block)}" for use, block in blocks.items()
        ]
        notes.append(f"Blocks of their own, since their numbers are not comparable: {'; '.join(listed)}.")
    for block in blocks.values():
        notes += reference_warnings([scores[place] for place in block], [names[place] for place in block])
    return notes


def _unverified(score: ScoreReport, name: str) -> Iterator[str]:
    """A sentence where the protocol keeps the reference, no list shows it, and nothing is declared."""
    unverified = [run.benchmark for run in score.parts if run.signature.unverified]
    if unverified:
        members = f" ({', '.join(unverified)})" if score.runs else ""
        yield (
            f"reference: {name}{members} is unverified: no list holds the reference, and the "
            f"file does not say whether it was kept. {FIX}"
        )


def _differing(runs: Sequence[ScoreReport], names: Sequence[str]) -> Iterator[str]:
    """A sentence where two of them made different use of the reference: the two that are furthest apart."""
    signatures = [run.signature for run in runs]
    shares = [each.reference_held or (0, 1) for each in signatures]
    order = sorted(range(len(runs)), key=lambda place: Fraction(*shares[place]))
    uses = {each.reference for each in signatures}
    if runs and (shares_differ(shares[order[0]], shares[order[-1]]) or uses == {"kept", "removed"}):
        low, high = order[0], order[-1]
        yield (
            f"reference: {names[high]} ranks it in {_share(signatures[high])}, {names[low]} in "
            f"{_share(signatures[low])}. That alone can set their numbers apart. "
            "Fix: compare files that treat it alike."
        )


def _share(signature: Signature) -> str:
    held, lists = signature.reference_held or (0, 0)
    percent = f" ({100 * held / lists:.2f} %)" if lists else ""
    declared = f", declared {signature.reference_declared}" if signature.reference_declared else ""
    return f"{held:,} of {lists:,} lists{percent}{declared}"
