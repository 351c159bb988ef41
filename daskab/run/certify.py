"""The Python door: certify a model in one call."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from daskab.errors import JobError
from daskab.files import path_at
from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ
from daskab.run.asked import ask
from daskab.run.certificate import Certificate
from daskab.run.cluster import ClusterOptions
from daskab.run.deadline import deadline_in
from daskab.run.executors import executor
from daskab.run.job import MOST_SLICES, AttackOptions, BoundOptions, bound_options, read_cluster
from daskab.run.plan import Question
from daskab.run.progress import Progress
from daskab.run.queue import answer
from daskab.run.stages import Outcome

SETS_WORK = 400_000_000
LEAST_SET_NODES, MOST_SET_NODES = 20_000, 1_000_000
"""By default the search over sets opens SETS_WORK / (centres x inputs) nodes, within these limits."""


def make_question(model: KernelExpansion, bound: BoundOptions, attack: AttackOptions) -> Question:
    """What is asked of a model, from the options of a job."""
    adaptive, grid = bound.method == "adaptive", bound.method == "grid"
    # Only one-input bounds of a sum's parts add up: what a search of several inputs excludes is about one part.
    together = adaptive and model.kernel == EQ
    return Question(
        model_digest=model.digest,
        n_centres=model.n_centres,
        n_inputs=model.n_inputs,
        method=bound.method,
        slices=bound.slices,
        rtol=bound.rtol if adaptive else None,
        node_budget=bound.node_budget if adaptive else 0,
        pair_nodes=bound.pair_nodes if together else 0,
        set_nodes=nodes_for_sets(model, bound) if together else 0,
        components=bound.components if grid else 0,
        resolution=bound.resolution if grid else 0,
        enhance=bound.enhance,
        enhance_slices=(bound.enhance_slices or min(2 * bound.slices, MOST_SLICES)) if bound.enhance else 0,
        attack_starts=attack.starts,
        attack_seed=attack.seed,
    )


def nodes_for_sets(model: KernelExpansion, bound: BoundOptions) -> int:
    """The budget of the search over sets: the job's, or about five minutes of one core."""
    if bound.set_nodes is not None:
        return bound.set_nodes
    return min(max(SETS_WORK // (model.n_centres * model.n_inputs), LEAST_SET_NODES), MOST_SET_NODES)


def certify_model(
    model: KernelExpansion,
    bound: BoundOptions,
    attack: AttackOptions,
    *,
    runs: Path | None,
    cluster: ClusterOptions,
    time_limit: float | None = None,
    progress: Callable[[str], Progress] = lambda _: Progress(),
) -> Outcome:
    """Certify a model in ``runs``, or in a temporary directory when that is None."""
    question = make_question(model, bound, attack)
    if runs is None:
        with tempfile.TemporaryDirectory(prefix="daskab-") as folder:
            return certify_model(
                model,
                bound,
                attack,
                runs=Path(folder),
                cluster=cluster,
                time_limit=time_limit,
                progress=progress,
            )
    with executor(cluster) as workers:
        return answer(ask(question, model, runs, deadline=deadline_in(time_limit), progress=progress), workers)


def certify(
    model: KernelExpansion,
    *,
    method: str = "adaptive",
    rtol: float | None = None,
    slices: int | None = None,
    node_budget: int | None = None,
    pair_nodes: int | None = None,
    set_nodes: int | None = None,
    components: int | None = None,
    resolution: int | None = None,
    enhance: int | None = None,
    enhance_slices: int | None = None,
    time_limit: float | None = None,
    cluster: str | os.PathLike[str] = "inline",
    runs: str | os.PathLike[str] | None = None,
    seed: int = 0,
) -> Certificate:
    """Prove how many inputs an attacker must change to fool a classifier, anywhere in its box.

    Parameters
    ----------
    model : KernelExpansion
        From `daskab.load_model`, or the ``model_`` of a fitted `daskab.GPClassifier`.
    method : {"adaptive", "fixed", "grid"}
        Refine until every input that matters is within ``rtol`` of what it attains; or cut every input into
        ``slices`` equal slices and bound every sequence of them once, by a quadratic; or by the paper's grid.
    rtol : float, optional
        Adaptive only: the tolerance, default 0.002.
    slices : int, optional
        Default 4 to start from if adaptive, else 100.
    node_budget : int, optional
        Adaptive only: most sequences bounded an input, default 20000.
    pair_nodes : int, optional
        Adaptive only: most nodes of the search over pairs that differ in several inputs, default 20000; 0 for none.
    set_nodes : int, optional
        Adaptive only: most nodes of the search over sets of inputs, by default some minutes' worth; 0 for none.
    components, resolution : int, optional
        Grid only: principal directions it spans (1 to 3, default 2), and lines along the diagonal (default 50).
    enhance, enhance_slices : int, optional
        Not adaptive: how often the input with the highest bound is cut finer (default 0), and into how many slices
        (default twice ``slices``; one more whenever its bound did not fall).
    time_limit : float, optional
        Seconds; afterwards the certificate is what was proved until then, and not ``complete``.
    cluster : {"inline", "processes"} or path
        One task after another here, a Dask cluster of local processes, or what the ``[cluster]`` of a TOML file
        says; the answer is the same to the bit.
    runs : path, optional
        Directory, or ``s3://bucket/prefix``, to keep the run's evidence in; asked again, it is found there. Default:
        not kept.
    seed : int
        Of the attack.

    Returns
    -------
    Certificate
        With ``upper_bound`` (D,), ``attained`` (D,), ``inputs_required`` and ``witnesses``.

    Raises
    ------
    JobError
        If an option is wrong.
    ClusterError
        If the cluster cannot be reached, or computes with other versions.
    IntegrityError
        If the evidence is damaged or contradicts itself; nothing is certified then.

    Examples
    --------
    >>> import daskab
    >>> model = daskab.KernelExpansion([[0.2, 0.5], [0.8, 0.5]], [-1.0, 1.0], 0.5, [0, 0], [1, 1],
    ...                                latent_low=-0.5, latent_high=0.5)
    >>> certificate = daskab.certify(model)
    >>> certificate.inputs_required
    1
    """
    if time_limit is not None and not 0.0 < time_limit < math.inf:
        raise JobError(f"time_limit: {time_limit!r} is not a positive, finite number of seconds")
    bound = bound_options(
        method=method,
        rtol=rtol,
        slices=slices,
        node_budget=node_budget,
        pair_nodes=pair_nodes,
        set_nodes=set_nodes,
        components=components,
        resolution=resolution,
        enhance=enhance,
        enhance_slices=enhance_slices,
    )
    folder, where = None if runs is None else path_at(runs), read_cluster(os.fspath(cluster))
    outcome = certify_model(model, bound, AttackOptions(seed=seed), runs=folder, cluster=where, time_limit=time_limit)
    return outcome.certificate
