"""Training of small heads: what it trains, and a loop that may be stopped and taken up again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
