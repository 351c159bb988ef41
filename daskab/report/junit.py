"""Jobs as JUnit XML, which CI systems show: each a suite of one test case a model, and one a baseline."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from daskab.files import write_atomically
from daskab.report.results import BaselineResult, Result, Results, exit_code
from daskab.report.verdict import bound_ratio, inputs, verdict
from daskab.run.certificate import Certificate

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot carry, not even escaped."""


def write_junit(jobs: Sequence[Results], path: Path) -> None:
    """Write the results of jobs; passed, failed and erroneous as their exit codes say."""
    root = ET.Element("testsuites")
    root.extend(map(suite_of, jobs))
    ET.indent(root)
    # With a declaration of its own, ElementTree would name the locale's encoding.
    text = ET.tostring(root, encoding="unicode")
    write_atomically(path, f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def suite_of(results: Results) -> ET.Element:
    """One job."""
    cases = [case_of(results, result) for result in results]
    cases += [case_of_baseline(results.job, one) for one in results.baselines]
    about = {
        "name": results.job,
        "tests": str(len(cases)),
        "time": seconds(sum(one.seconds for one in (*results, *results.baselines))),
        "timestamp": results.begun.isoformat(timespec="seconds"),
        "hostname": as_xml(platform.node()),
    }
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        about[count] = str(sum(case.find(kind) is not None for case in cases))
    suite = ET.Element("testsuite", about)
    suite.extend(cases)
    return suite


def case_of(results: Results, result: Result) -> ET.Element:
    """One model."""
    certificate = None if result.outcome is None else result.outcome.certificate
    more = {} if result.baseline is None else {"baseline": result.baseline.name}
    known = None if certificate is None else (certificate, said(certificate, result.accuracy) | more)
    return case(results.job, result.model, result.seconds, known, what_is_wrong(results, result))


def case_of_baseline(job: str, one: BaselineResult) -> ET.Element:
    """One baseline: a failure if it is worse than it was, never for what the job requires of models."""
    if one.found is None:
        return case(job, one.name, one.seconds, None, ("error", one.error or "not known"))
    known = one.found.certificate, said(one.found.certificate, one.found.model.accuracy)
    return case(job, one.name, one.seconds, known, None if one.worse is None else ("failure", one.worse))


def case(
    job: str, name: str, took: float, known: tuple[Certificate, dict[str, str]] | None, wrong: tuple[str, str] | None
) -> ET.Element:
    """A test case: properties and the verdict in words, where there is a certificate, and what is wrong."""
    found = ET.Element("testcase", classname=job, name=name, time=seconds(took))
    if known is not None:
        properties = ET.SubElement(found, "properties")
        for key, value in known[1].items():
            ET.SubElement(properties, "property", name=key, value=value)
    if wrong is not None:
        ET.SubElement(found, wrong[0], message=as_xml(wrong[1]))
    if known is not None:
        ET.SubElement(found, "system-out").text = as_xml(verdict(known[0]))
    return found


def what_is_wrong(results: Results, result: Result) -> tuple[str, str] | None:
    """Kind and message of what keeps a test case from passing."""
    if result.outcome is None:
        return ("skipped", "not reached") if result.error is None else ("error", result.error)
    if result.worse is not None:
        return "failure", result.worse
    certificate, failures = result.outcome.certificate, result.outcome.failures
    if exit_code(certificate, results.require_inputs) == 0:
        return None
    if failures:
        return "error", f"{len(failures)} tasks could not be done, the first: {failures[0].task} {failures[0].why}"
    certified = f"certified {inputs(certificate.inputs_required or 0)}"
    if results.require_inputs is None:
        return "error", f"incomplete; {certified} so far"
    return "failure", f"{certified}, required {results.require_inputs}{'' if certificate.complete else '; incomplete'}"


def said(certificate: Certificate, accuracy: float | None) -> dict[str, str]:
    """Properties of a certificate and its model; without those they do not have."""
    ratio = bound_ratio(certificate)
    values = {
        "run_id": certificate.run_id,
        "inputs_required": certificate.inputs_required,
        "attack_inputs": certificate.attack_inputs,
        "no_attack_exists": certificate.no_attack_exists,
        "exact": certificate.exact,
        "complete": certificate.complete,
        "accuracy": None if accuracy is None else f"{accuracy:.6g}",
        "R": None if ratio is None else f"{ratio:.6f}",
    }
    return {name: str(value).lower() for name, value in values.items() if value is not None}


def seconds(number: float) -> str:
    """A duration as JUnit has it."""
    return f"{number:.3f}"


def as_xml(text: str) -> str:
    """Text without what XML cannot carry."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
