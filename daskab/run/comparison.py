"""A model's result of this night against its last one: what became worse by more than is tolerated."""

from __future__ import annotations

from collections.abc import Iterator

from daskab.run.nightly import Tolerances
from daskab.run.nights import Measured, ModelNight

NOISE = 1.0
"""Seconds that a time may grow by in any case."""

MOST_NAMED = 5


def compare(now: ModelNight, number: int, before: ModelNight, tolerance: Tolerances) -> ModelNight:
    """A sealed result with its verdict beside the sealed one ``before`` of night ``number``."""
    assert now.measured is not None
    assert before.measured is not None
    a, b = before.measured, now.measured
    worse = [*_inputs_required(a, b, tolerance), *_bounds(a, b, tolerance)]
    worse += [*_thresholds(a, b, tolerance), *_accuracy(a, b, tolerance)]
    warned = [*_other_baseline(before, now), *_other_inputs(a, b)]
    (worse if tolerance.time_fails else warned).extend(_time(a, b, tolerance))
    was, is_now = a.robustness, b.robustness
    if worse:
        verdict = "regressed"
    elif now.run == before.run:
        verdict = "unchanged"
    else:
        verdict = "improved" if is_now is not None and (was is None or is_now > was) else "held"
    return now.model_copy(
        update={"verdict": verdict, "compared_with": number, "worse": tuple(worse), "warned": tuple(warned)}
    )


def _inputs_required(a: Measured, b: Measured, tolerance: Tolerances) -> Iterator[str]:
    was, now = a.robustness, b.robustness
    if was is None:
        return
    if now is None:
        yield f"certified inputs: {certified(a)} before, and now the model has no thresholds"
    elif now < was - tolerance.inputs_required:
        yield f"certified inputs fell from {certified(a)} to {certified(b)}{_at_most(tolerance.inputs_required)}"


def _bounds(a: Measured, b: Measured, tolerance: Tolerances) -> Iterator[str]:
    if tolerance.upper_bound is None:
        return
    both = [(name, a.upper_bound[name], now) for name, now in b.upper_bound.items() if name in a.upper_bound]
    rose = [(name, was, now) for name, was, now in both if now > was * (1.0 + tolerance.upper_bound)]
    if rose:
        rose.sort(key=lambda one: one[1] / one[2])
        named = ", ".join(f"{name} {was:.4g} to {now:.4g}" for name, was, now in rose[:MOST_NAMED])
        more = f", and {len(rose) - MOST_NAMED} more" if len(rose) > MOST_NAMED else ""
        by = f" by more than {100 * tolerance.upper_bound:g} %" if tolerance.upper_bound else ""
        yield f"bounds of {len(rose)} of {len(both)} inputs rose{by}: {named}{more}"


def _thresholds(a: Measured, b: Measured, tolerance: Tolerances) -> Iterator[str]:
    if tolerance.thresholds is None or a.latent_low is None or a.latent_high is None:
        return
    apart = a.latent_high - a.latent_low
    for name, was, now in (("low", a.latent_low, b.latent_low), ("high", a.latent_high, b.latent_high)):
        if now is None:
            yield f"the {name} threshold is gone; it was {was:.4g}"
        elif abs(now - was) > tolerance.thresholds * apart:
            moved = f"the {name} threshold moved from {was:.4g} to {now:.4g}"
            yield f"{moved}, by more than {100 * tolerance.thresholds:g} % of their distance"


def _accuracy(a: Measured, b: Measured, tolerance: Tolerances) -> Iterator[str]:
    if tolerance.accuracy is None or a.accuracy is None:
        return
    if b.accuracy is None:
        yield f"the accuracy is not known any more; it was {a.accuracy:.4g}"
    elif a.accuracy - b.accuracy > tolerance.accuracy + 1e-12:  # 0.95 - 0.94 is not 0.01
        yield f"accuracy fell from {a.accuracy:.4g} to {b.accuracy:.4g}{_at_most(tolerance.accuracy)}"


def _time(a: Measured, b: Measured, tolerance: Tolerances) -> Iterator[str]:
    if a.seconds is None or b.seconds is None:
        return
    if b.seconds > a.seconds * tolerance.time and b.seconds > a.seconds + NOISE:
        yield f"time grew from {a.seconds:.4g} to {b.seconds:.4g} s, by more than a factor of {tolerance.time:g}"


def _other_baseline(before: ModelNight, now: ModelNight) -> Iterator[str]:
    if now.baseline and now.run != before.run:
        yield "it is another baseline than before: its data, what is asked of it, or versions have changed"


def _other_inputs(a: Measured, b: Measured) -> Iterator[str]:
    for what, names in (
        ("new inputs", [name for name in b.upper_bound if name not in a.upper_bound]),
        ("inputs gone", [name for name in a.upper_bound if name not in b.upper_bound]),
    ):
        if names:
            more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            yield f"{what}: {', '.join(names[:MOST_NAMED])}{more}"


def _at_most(number: float) -> str:
    return f"; a fall of at most {number:g} is tolerated" if number else ""


def certified(measured: Measured) -> str:
    """What is certified, in a word or two."""
    if measured.no_attack_exists:
        return "no attack exists"
    return "no thresholds" if measured.inputs_required is None else str(measured.inputs_required)
