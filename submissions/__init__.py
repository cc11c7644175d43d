"""Rank files: what a method answers, read, validated, scored and converted.

`read`, `write`, `validate`, `score`, `convert` are what the `cir` commands of the same names call.
Everything is imported when it is first used, so that `import submissions` costs nothing.
"""

import lazy_loader

# The names, and the modules that hold them, stand in __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
