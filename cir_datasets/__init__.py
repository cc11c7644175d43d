"""What is asked: benchmarks of composed image retrieval, as typed rows and as Hugging Face datasets.

`import cir_datasets` makes the benchmarks' names known to `datasets.load_dataset`, in either import order,
and imports nothing heavy: names below are loaded when they are used.
"""

import lazy_loader

from cir_metrics import hooks

# The names, and the modules that hold them, stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

hooks.wrap_after_import("datasets", "cir_datasets.hook")
