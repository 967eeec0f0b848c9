"""Differential privacy under temporal correlations: the algorithms of five papers, exact and fast.

Every public name is imported on first use (PEP 562), so that ``import tplrepro`` loads neither
Numba nor pandas.

>>> import tplrepro as tpl
>>> tpl.__version__
'0.5.0'

References
----------
Numbers in brackets stand for these papers throughout.

[1] Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong: Quantifying Differential Privacy in Continuous Data
    Release Under Temporal Correlations. IEEE TKDE 31(7), 2019.
[2] Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong: Quantifying Differential Privacy under Temporal
    Correlations. ICDE 2017.
[3] B. Jiang, M. Li, R. Tandon: Online Context-aware Data Release with Sequence Information
    Privacy. 2023.
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in
    Continuous Event Data Publishing. 2022.
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with
    Differential Privacy via Hidden Markov Model. 2016.
"""

from tplrepro.lazy import lazy_names as _lazy_names

__version__ = "0.5.0"

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
