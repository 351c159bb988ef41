r"""From a Gaussian over the latent at inducing points to the weights of a kernel expansion (method 1).

With K = K_ZZ + jitter I = L L' and the variational mean m, a library's latent mean is

    whitened      f(x) = c + k(x, Z) L^-T m       q(v) = N(m, .) of v = L^-1 (u - c)
    unwhitened    f(x) = c + k(x, Z) K^-1 (m - c)   q(u) = N(m, .) of the latent u at Z

The jitter is part of the function: with another one it is a different model, often by as much as the latent itself.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist

from daskab.errors import ModelError
from daskab.model.checked import Array
from daskab.model.kernels import KernelName, profile


def variational_weights(
    kernel: KernelName,
    centres: Array,
    mean: Array,
    lengthscale: Array,
    variance: float,
    jitter: float,
    *,
    whitened: bool,
) -> Array:
    """Weights of a kernel at inducing points.

    Parameters
    ----------
    kernel : str
    centres : ndarray, shape (M, D)
        The inducing points Z.
    mean : ndarray, shape (M,)
        The variational mean; unwhitened, less the constant mean function.
    lengthscale : ndarray, shape (D,)
    variance : float
    jitter : float
        What the library adds to the diagonal of K_ZZ.
    whitened : bool

    Returns
    -------
    ndarray, shape (M,)

    Raises
    ------
    ModelError
        If K_ZZ with this jitter has no Cholesky factor.

    Notes
    -----
    Hensman, Matthews, Ghahramani (2015), "Scalable variational Gaussian process classification", equation 12;
    whitened as in Matthews (2017), section 3.2.
    """
    scaled = centres / lengthscale
    # Differences, not |x|^2 - 2 x.z + |z|^2: data far from the origin keeps its digits.
    values = profile(kernel, 0.5 * cdist(scaled, scaled, "sqeuclidean"))
    among = variance * values + jitter * np.eye(centres.shape[0])
    try:
        factor = cholesky(among, lower=True)
    except LinAlgError:
        raise ModelError(
            f"model: the kernel of its inducing points, with a jitter of {jitter:g}, has no Cholesky factor; what the "
            "library would do then is not certified: raise its jitter, or drop inducing points that coincide"
        ) from None
    weights = solve_triangular(factor, mean, lower=True, trans=1) if whitened else cho_solve((factor, True), mean)
    return np.asarray(weights, dtype=np.float64)
