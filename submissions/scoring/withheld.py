"""Where scores of withheld ground truth come from; in a file of its own: few benchmarks withhold theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submissions.errors import WithheldError
from submissions.formats.servers import server_format

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec


def withheld_error(file: str, spec: BenchmarkSpec) -> WithheldError:
    """What a file for a benchmark of withheld ground truth is refused with; it names the way out.

    Args:
        file: the file's name.
        spec: the benchmark.
    """
    if spec.card.source.publisher == "challenge":
        return WithheldError(
            f"{file}: {spec.id} is a challenge: its ground truth is sealed. Fix: cir submit {file} --to URL"
        )
    server = server_format(spec.card.name)
    if server is not None:
        way_out = (
            f"The {spec.card.short_title} server scores it. "
            f"Fix: cir convert {file} --to {server} --benchmark {spec.id}"
        )
    else:
        public = [f"{spec.card.name}/{n}" for n, c in spec.card.configs.items() if c.ground_truth == "public"]
        near = [i for i in public if i.endswith("_val")] or public
        way_out = f"No server scores it any more. Fix: rank one with public ground truth, such as {near[0]}."
    return WithheldError(f"{file}: the ground truth of {spec.id} is withheld by its publisher. {way_out}")
