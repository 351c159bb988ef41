"""A sum of EQ kernels of different lengthscales."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class EQSum(NamedTuple):
    """sum_j share_j exp(-r^2 / (2 scale_j^2)), of the distance r in lengthscales of the kernel it stands for."""

    scales: Array  #: (J,) ascending
    shares: Array  #: (J,) positive


ONE_EQ = EQSum(np.ones(1), np.ones(1))
"""The EQ kernel as a sum of itself."""
