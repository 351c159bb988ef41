"""What is asked of a model: a run, or one that is made of others where its kernel is not EQ."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from daskab.model.expansion import KernelExpansion
from daskab.model.kernels import EQ
from daskab.run.driver import Drive
from daskab.run.plan import Question
from daskab.run.progress import Progress
from daskab.run.sandwich.drive import SandwichDrive
from daskab.run.stages import Run


def ask(
    question: Question,
    model: KernelExpansion,
    runs: Path,
    *,
    batch: int | None = None,
    deadline: float = math.inf,
    progress: Callable[[str], Progress] = lambda _: Progress(),
) -> Run:
    """The run that answers a question.

    Parameters
    ----------
    question, model, runs, batch, deadline : as of `Drive`
    progress : of a run, by what it is called beside the model's name: nothing, or which part it is of
    """
    if model.kernel == EQ:
        return Drive(question, model, runs, batch=batch, deadline=deadline, progress=progress(""))
    return SandwichDrive(question, model, runs, batch=batch, deadline=deadline, progress=progress)
