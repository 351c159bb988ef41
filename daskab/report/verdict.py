"""The verdict in words: what is proved, what an attack does, how far apart they are."""

from __future__ import annotations

import numpy as np

from daskab.run.certificate import LINEAR, Certificate

REST = {
    "sum": "",
    "pairs": " The search over pairs of points proves the rest.",
    "sets": " The search over sets of them proves the rest.",
}


def inputs(n: int, noun: str = "input") -> str:
    """A number of inputs, in words."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def verdict(certificate: Certificate, classes: tuple[str, str] | None = None, noun: str = "input") -> str:
    """The certificate in a few plain sentences.

    Parameters
    ----------
    certificate : Certificate
    classes : names of class 0 and class 1, if known
    noun : what an input is called
    """
    moved = "from confidently one class to confidently the other"
    if classes is not None:
        moved = f"between confidently {classes[0]} and confidently {classes[1]}"
    lines = []
    if certificate.delta is None:
        lines.append("The model has no thresholds, so its one-input bounds say nothing about a number of inputs.")
    elif certificate.no_attack_exists:
        lines.append(f"Proved: no attack exists. Changing every {noun} at once cannot move any point {moved}.")
    elif certificate.inputs_required is not None and certificate.inputs_required > 1:
        fewer = inputs(certificate.inputs_required, noun)
        lines.append(f"Proved: no point can be moved {moved} by changing fewer than {fewer}.")
    else:
        lines.append(f"Nothing is proved beyond the obvious: changing 1 {noun} may move a point {moved}.")
    attack = certificate.attack
    if attack is not None:
        lines.append(
            f"Attack: changing {inputs(attack.n_inputs, noun)} does it "
            f"(latent {attack.latent_x:.4g} to {attack.latent_x_prime:.4g})."
        )
    elif certificate.delta is not None and not certificate.no_attack_exists:
        lines.append("Attack: none was found.")
    if certificate.exact and attack is not None:
        lines.append("Exact: the attack changes no more than is proved to be needed.")
    if certificate.proved_by == "range":
        lines.append("The latent does not reach both thresholds anywhere in the box.")
    elif certificate.inputs_required_by_sum is not None and certificate.method != LINEAR:  # whose bounds are exact
        lines.append(
            f"Alone, the sum of the one-{noun} bounds proves {certificate.inputs_required_by_sum}, with perfect bounds "
            f"{certificate.inputs_required_at_best}; ours are {looseness(certificate)}.{REST[certificate.proved_by]}"
        )
    if not certificate.complete:
        lines.append(
            f"Incomplete: {certificate.open_inputs} of {len(certificate.input_names)} {noun}s are not closed to the "
            "tolerance. What is proved holds; more time or a larger budget may prove more."
        )
    return "\n".join(lines)


def looseness(certificate: Certificate) -> str:
    """How far the sum of the bounds that matter lies above the sum of what they attain."""
    ratio = bound_ratio(certificate)
    return "not comparable to an attained value" if ratio is None else f"{100 * (ratio - 1):.2g} % above attained"


def bound_ratio(certificate: Certificate) -> float | None:
    """R: sum of the n largest bounds over sum of the n largest attained values, n = inputs_required_at_best."""
    n = certificate.inputs_required_at_best or len(certificate.input_names)
    attained = float(np.sort(certificate.attained)[::-1][:n].sum())
    if attained <= 0.0:
        return None
    return float(np.sort(certificate.upper_bound)[::-1][:n].sum()) / attained
