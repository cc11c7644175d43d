"""What is asked: benchmarks of composed image retrieval, as typed rows and as Hugging Face datasets.

`import cir_datasets` makes the benchmarks' names known to `datasets.load_dataset`, in either import order,
and imports nothing heavy: names below are loaded when they are used.
"""

from typing import Any

import lazy_loader

from cir_datasets.hook import install as _install
from cir_metrics.hook import on_import as _on_import


def _html(spec: Any, rows: Any) -> str:
    from cir_datasets.browse.notebook import queries_html

    return queries_html(spec, rows)


# The names, and the modules that hold them, stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_install()
# Rows stand below what finds and draws their pictures, and are given a way to find them, for notebooks.
_on_import("cir_datasets.rows.notebook", lambda rows: rows.show_with(_html))
