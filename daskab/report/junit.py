"""Jobs as JUnit XML, which CI systems show: each a suite of one test case a model."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from daskab.files import write_atomically
from daskab.report.results import Result, Results, exit_code
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
    about = {
        "name": results.job,
        "tests": str(len(cases)),
        "time": seconds(sum(result.seconds for result in results)),
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
    case = ET.Element("testcase", classname=results.job, name=result.model, time=seconds(result.seconds))
    if result.outcome is not None:
        certificate = result.outcome.certificate
        properties = ET.SubElement(case, "properties")
        for name, value in said(certificate).items():
            ET.SubElement(properties, "property", name=name, value=value)
    wrong = what_is_wrong(results, result)
    if wrong is not None:
        ET.SubElement(case, wrong[0], message=as_xml(wrong[1]))
    if result.outcome is not None:
        ET.SubElement(case, "system-out").text = as_xml(verdict(result.outcome.certificate))
    return case


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


def said(certificate: Certificate) -> dict[str, str]:
    """A certificate's properties; without those it does not have."""
    ratio = bound_ratio(certificate)
    values = {
        "run_id": certificate.run_id,
        "inputs_required": certificate.inputs_required,
        "attack_inputs": certificate.attack_inputs,
        "no_attack_exists": certificate.no_attack_exists,
        "exact": certificate.exact,
        "complete": certificate.complete,
        "R": None if ratio is None else f"{ratio:.6f}",
    }
    return {name: str(value).lower() for name, value in values.items() if value is not None}


def seconds(number: float) -> str:
    """A duration as JUnit has it."""
    return f"{number:.3f}"


def as_xml(text: str) -> str:
    """Text without what XML cannot carry."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
