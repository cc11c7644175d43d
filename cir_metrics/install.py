"""Puts the evaluate modules into evaluate's own cache, to load without an import of this package.

evaluate looks at a folder of that name, at the Hub, and then at the newest
`<modules cache>/metrics/evaluate-metric--NAME/<64 hex digits>/NAME.py`. Where the Hub cannot be reached each
load waits for evaluate's retries first, unless HF_HUB_OFFLINE=1 is set; `import cir_metrics` asks nobody.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from cir_metrics.evaluate_hook import module_folder, module_names


def install() -> dict[str, Path]:
    """Copy the metrics' scripts into evaluate's module cache; a second call refreshes them.

    Returns:
        Module name -> path of its installed script.

    Raises:
        ImportError: evaluate cannot be imported.
        OSError: the cache cannot be written to.
    """
    from evaluate.loading import init_dynamic_modules

    metrics = Path(init_dynamic_modules()) / "metrics"
    return {name: _install_one(metrics, name) for name in module_names()}


def _install_one(metrics: Path, name: str) -> Path:
    script = (module_folder(name) / f"{name}.py").read_bytes()
    package = metrics / f"evaluate-metric--{name}"
    folder = package / hashlib.sha256(script).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    for each in (metrics, package, folder):
        (each / "__init__.py").touch(exist_ok=True)
    target = folder / f"{name}.py"
    _replace(target, script)
    return target


def _replace(target: Path, content: bytes) -> None:
    """Write under another name and rename: who loads the script meanwhile sees a whole one."""
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
