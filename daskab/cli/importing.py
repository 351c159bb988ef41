"""``daskab import``: a model fitted elsewhere becomes an ``.npz`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import daskab
from daskab.cli.parameters import FilePath
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.pickled import check_pickle, load_estimator
from daskab.model.npz import save_model

# By the package of a class, or of one it is made from: what it is called, and which function of daskab imports it.
LIBRARIES = {
    "GPy": ("GPy", "from_gpy"),
    "gpflow": ("GPflow", "from_gpflow"),
    "gpytorch": ("GPyTorch", "from_gpytorch"),
}
OTHERWISE = ("scikit-learn", "from_sklearn")
"""Whatever is of none of them is scikit-learn's to refuse."""

# Inputs whose box is told, so that a table of hundreds does not hide the rest.
TOLD = 6


@click.command("import")
@click.argument("file", metavar="FILE", type=FilePath(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=FilePath(dir_okay=False, path_type=Path),
    metavar="MODEL.npz",
    help="Where to write the model.",
)
@click.option("--trust", is_flag=True, help="Open FILE although a pickle runs whatever code is in it.")
@click.option("--lower", metavar="NUMBERS", help="Lower edge of the box: one number, or one a column, as 0,0,18.")
@click.option("--upper", metavar="NUMBERS", help="Upper edge. Default of both: the range of the training points.")
@click.option("--thresholds", type=float, nargs=2, metavar="LOW HIGH", help="Latents beyond which it is confident.")
@click.option(
    "--percentile",
    type=float,
    default=5.0,
    show_default=True,
    help="Without them: this and the opposite percentile of the latent over the training points.",
)
@click.option("--names", metavar="NAMES", help="Names of the columns, commas between them.")
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="LABEL",
    help="Of more classes than two (scikit-learn): the one against the rest; given twice, the two one against another.",
)
def import_model(
    file: Path,
    output: Path,
    trust: bool,
    lower: str | None,
    upper: str | None,
    thresholds: tuple[float, float] | None,
    percentile: float,
    names: str | None,
    classes: tuple[str, ...],
) -> int:
    """Import a fitted classifier, kept with pickle or joblib, to certify it.

    FILE holds a GaussianProcessClassifier of scikit-learn with an RBF or Matern kernel, or a Pipeline of StandardScaler
    and MinMaxScaler that ends in one; the model is then about the raw columns. Or a model of GPy, GPflow or GPyTorch;
    where it does not hold the points it was trained on, give --lower, --upper and --thresholds.
    """
    if (lower is None) != (upper is None):
        raise click.UsageError("--lower, --upper: one is given without the other; give both or neither")
    box = None if lower is None or upper is None else (_edge("--lower", lower), _edge("--upper", upper))
    if not output.absolute().parent.is_dir():
        raise click.UsageError(f"{output}: there is no such directory to write it in")
    if output.exists() and file.exists() and output.samefile(file):
        raise click.UsageError(f"{output}: is the estimator itself; write the model elsewhere")
    check_pickle(file, trust=trust)
    click.echo(f"daskab: warning: opening {file} runs the code in it, as --trust allows", err=True)
    estimator, notes = load_estimator(file, trust=trust)
    for note in notes:
        click.echo(f"daskab: warning: {file}: {note}", err=True)
    source, importer = _library(estimator)
    options: dict[str, Any] = {"classes": (classes[0] if len(classes) == 1 else classes)} if classes else {}
    if options and (source, importer) != OTHERWISE:
        raise click.UsageError(f"--class: is of scikit-learn's classifiers; this is a model of {source}")
    model: KernelExpansion = getattr(daskab, importer)(
        estimator,
        box=box,
        thresholds=thresholds,
        percentile=percentile,
        input_names=names.split(",") if names else (),
        **options,
    )
    save_model(model, output)
    click.echo(f"{output} ({model.n_centres} centres, {model.n_inputs} inputs)")
    click.echo(f"  Box: {_box(model)}.")
    click.echo(f"  Confident: where the latent is at most {model.latent_low:.3f} or at least {model.latent_high:.3f}.")
    probes = 0 if model.probe_latents is None else model.probe_latents.size
    click.echo(f"  At {probes} points it says what {source} says.")
    return 0


def _library(estimator: Any) -> tuple[str, str]:
    """The library an estimator is of, and what imports it."""
    for kind in type(estimator).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in LIBRARIES:
            return LIBRARIES[package]
    return OTHERWISE


def _edge(option: str, text: str) -> list[float] | float:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is not a number, or numbers with commas between them") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _box(model: KernelExpansion) -> str:
    edges = zip(model.input_names[:TOLD], model.lower, model.upper, strict=False)
    told = [f"{name} {low:g} to {high:g}" for name, low, high in edges]
    more = model.n_inputs - len(told)
    return ", ".join(told) + (f" and {more} more" if more else "")
