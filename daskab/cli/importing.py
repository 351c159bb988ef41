"""``daskab import``: a model fitted elsewhere becomes an ``.npz`` file."""

from __future__ import annotations

from pathlib import Path

import click

from daskab.cli.parameters import FilePath
from daskab.model.expansion import KernelExpansion
from daskab.model.importers.pickled import check_pickle, load_estimator
from daskab.model.importers.sklearn import from_sklearn
from daskab.model.npz import save_model

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
    help="Of more than two classes: the one against the rest; given twice, the two that are one against another.",
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
    """Import a fitted scikit-learn classifier, kept with pickle or joblib, to certify it.

    FILE holds a GaussianProcessClassifier with an RBF kernel, or a Pipeline of StandardScaler and MinMaxScaler that
    ends in one; the model is then about the raw columns.
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
    model = from_sklearn(
        estimator,
        classes=(classes[0] if len(classes) == 1 else classes) or None,
        box=box,
        thresholds=thresholds,
        percentile=percentile,
        input_names=names.split(",") if names else (),
    )
    save_model(model, output)
    click.echo(f"{output} ({model.n_centres} centres, {model.n_inputs} inputs)")
    click.echo(f"  Box: {_box(model)}.")
    click.echo(f"  Confident: where the latent is at most {model.latent_low:.3f} or at least {model.latent_high:.3f}.")
    probes = 0 if model.probe_latents is None else model.probe_latents.size
    click.echo(f"  At {probes} points it says what scikit-learn says.")
    return 0


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
