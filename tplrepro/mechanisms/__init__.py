"""Mechanisms of one release: each with its draws and the likelihood of what it releases."""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "KaryRandomizedResponse": "randomized_response",
    "UnaryEncoding": "randomized_response",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
