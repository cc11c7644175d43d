"""Registering an overlay: its file is checked, against the rows where there are any, and kept as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from cir_datasets.common.atomic import write_whole
from cir_datasets.prepared.overlaid import restrict
from cir_datasets.registry import read_overlay
from cir_datasets.registry.overlays import Overlay, overlay_fault, overlay_file


def add_overlay(
    path: str | Path, *, benchmark: str | None = None, name: str | None = None, replace: bool = False
) -> Overlay:
    """Register an overlay: check its file and put it into the folder of overlays, as JSON.

    Where the benchmark's rows are available, its query ids are checked against them; else they are when it is
    first loaded.

    Args:
        path: the file, see `read_overlay`.
        benchmark: what it is laid over, where the file does not say.
        name: its name, where the file does not say.
        replace: whether it may take the place of a registered overlay of the same name.

    Raises:
        OverlayError: the file is malformed, names a query that the benchmark lacks, or an overlay of that
            name is registered and `replace` is False; what was registered stays as it was.
        UnknownNameError: no benchmark has that id.
    """
    from cir_datasets import registry
    from cir_datasets.prepared import ensure, is_here
    from cir_datasets.rows import read_table

    overlay = read_overlay(path, benchmark=benchmark, name=name)
    place = overlay_file(overlay.benchmark, overlay.name)
    if place.exists() and not replace:
        overlay_fault(
            Path(path).expanduser(),
            f"{overlay.id} is registered already ({place})",
            'name it anew ("overlay" in a JSON file), or pass --replace (replace=True)',
        )
    spec = registry.spec(overlay.benchmark)
    if is_here(spec):
        restrict(read_table(ensure(spec).rows_file), overlay)
    try:
        write_whole(place, (json.dumps(overlay.to_dict(), ensure_ascii=False, indent=1) + "\n").encode())
    except OSError as error:
        overlay_fault(place, f"cannot be written: {error.strerror}", "set CIR_OVERLAYS to a folder of yours")
    return overlay
