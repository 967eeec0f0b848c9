"""Sequence information privacy (SIP): leakages, mechanisms as published and exact, baselines ([3]).

>>> from tplrepro import sip
>>> belief = [0.05, 0.95]
>>> published = sip.ConditionalRandomizedResponse(1.0).response(belief)
>>> round(published.leakage, 3)  # exceeds its budget of 1
2.566
>>> exact = sip.OptimalResponse(1.0).response(belief)
>>> exact.leakage <= 1.0, round(exact.cost(), 4)
(True, 0.05)
"""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
