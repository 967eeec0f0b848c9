from tplrepro.mechanisms import k_norm as k_norm
from tplrepro.mechanisms import laplace as laplace
from tplrepro.mechanisms.laplace import LaplaceNoise as LaplaceNoise
