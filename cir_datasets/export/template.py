"""Small invented folders in the layout of a benchmark whose data is not published: `templates/<name>/`.

They show what a folder must hold, and they load (without the counts).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from cir_datasets import registry
from cir_datasets.common.atomic import write_errors
from cir_datasets.errors import DatasetError
from cir_metrics.errors import CallError, UnknownNameError


def template_names() -> tuple[str, ...]:
    """Names of the benchmarks that have a template, sorted.

    Example:
        >>> template_names()
        ('fisd', 'zerosight')
    """
    folder = resources.files("cir_datasets") / "templates"
    return tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir()))


def write_template(name: str, folder: str | Path, configs: Sequence[str] = ()) -> list[Path]:
    """Write an example of the folder that a benchmark is read from.

    Args:
        name: a benchmark of `template_names`.
        folder: where the files go, as the publisher's folder; made if it is not there.
        configs: configurations to write the files of; empty for all.

    Returns:
        The files, `README.txt` with the schema first. `load(..., data_dir=folder,
        verification_mode="no_checks")` reads them.

    Raises:
        UnknownNameError: the benchmark has no template, or no such configuration.
        CallError: a file is there already; nothing has been written then.
        DatasetError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_template("fisd", folder, ["negation"])]
        ['README.txt', 'queries.json', 'images.json']
    """
    if name not in template_names():
        known = ", ".join(template_names())
        raise UnknownNameError(
            f"{name!r} has no template. Fix: name one of {known}; the others are read in their publishers' "
            "own layouts."
        )
    card = registry.card(name)
    unknown = [config for config in configs if config not in card.configs]
    if unknown:
        raise UnknownNameError(
            f"{name} has no configuration {unknown[0]!r}; it has {', '.join(card.configs)}."
        )
    chosen = [card.configs[config] for config in configs or card.configs]
    names = dict.fromkeys(file for config in chosen for file in (*config.files, *config.gallery_files))
    root = Path(folder).expanduser().absolute()
    targets = [root / "README.txt", *(root / file for file in names)]
    present = [path for path in targets if path.exists()]
    if present:
        raise CallError(f"{present[0]}: is there already. Fix: choose an empty folder.")
    with write_errors(root, DatasetError, "choose a folder of yours."):
        with resources.as_file(resources.files("cir_datasets") / "templates" / name) as origin:
            for target, file in zip(targets[1:], names, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin / file, target)
        about = f"An invented example of the folder that {name} is read from."
        targets[0].write_text(f"{about}\n\n{card.ids}\n\n{card.folder_schema}", encoding="utf-8")
    return targets
