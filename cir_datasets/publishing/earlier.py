"""What was published at a place before: read from its `croissant.json`, so that nothing is lost unsaid.

A folder or a repository may be written again by the benchmark that it holds alone, and a configuration that
is there goes away only where the caller says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from cir_datasets.errors import PublishError


@dataclass(frozen=True)
class Earlier:
    """An earlier publication.

    Args:
        where: the folder or the address of the repository.
        name: the benchmark that it holds.
        files: paths of its Parquet files, relative to the place.
    """

    where: str
    name: str
    files: frozenset[str]


def read_earlier(content: bytes, where: str) -> Earlier:
    """The publication that a `croissant.json` describes.

    Args:
        content: the file's bytes.
        where: the folder or the address of the repository, for messages.

    Raises:
        PublishError: it was not written by `publish`.

    Example:
        >>> read_earlier(b'{"name": "cirr", "distribution": [{"@id": "val/a.parquet"}]}', "there").files
        frozenset({'val/a.parquet'})
    """
    try:
        found: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise PublishError(_foreign(where, f"no JSON: {error}")) from error
    name = found.get("name") if isinstance(found, dict) else None
    listed = found.get("distribution") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise PublishError(_foreign(where, "it lists no files under `distribution`"))
    paths: list[str] = []
    for position, entry in enumerate(listed):
        path = entry.get("@id") if isinstance(entry, dict) else None
        if not isinstance(path, str):
            raise PublishError(_foreign(where, f"`distribution` {position} has no text as its `@id`"))
        paths.append(path)
    if not isinstance(name, str):
        raise PublishError(_foreign(where, "it has no text as its `name`"))
    ours = (path for path in paths if path.endswith(".parquet") and _stays_inside(path))
    return Earlier(where, name, frozenset(ours))


def check_earlier(earlier: Earlier, name: str, configs: Collection[str], *, remove_others: bool) -> None:
    """Refuse what would take away published data that the caller has not given up.

    Args:
        earlier: what is there, `files` limited to those that really are.
        name: the benchmark that is to be published there.
        configs: its configurations that will be there afterwards, galleries included.
        remove_others: whether the caller gives up the other configurations.

    Raises:
        PublishError: another benchmark is there, or configurations would go.
    """
    if earlier.name != name:
        raise PublishError(
            f"{earlier.where}: holds another benchmark, {earlier.name!r}; nothing was changed there.\n"
            f"  Fix: give {name} a place of its own."
        )
    lost = sorted(config_names(earlier.files) - set(configs))
    if lost and not remove_others:
        raise PublishError(
            f"{earlier.where}: configurations that are published there would be removed, because they are "
            f"not named now or their data is not available: {', '.join(lost)}. Nothing was changed there.\n"
            f"  Fix: publish all configurations ({name}) with their data available, or give these up with "
            "--remove-others (remove_others=True)."
        )


def config_names(paths: Iterable[str]) -> set[str]:
    """The configurations that Parquet files belong to."""
    return {path.partition("/")[0] for path in paths}


def _stays_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path


def _foreign(where: str, why: str) -> str:
    return (
        f"{where}: its croissant.json is not metadata of an earlier publication ({why}); nothing was changed "
        "there. Fix: choose another place, or move that file away."
    )
