"""daskab certifies how many inputs an attacker must change to fool a Gaussian-process classifier."""

import lazy_loader

from daskab._version import VERSION as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
