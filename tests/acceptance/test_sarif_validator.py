"""Microsoft's validator of SARIF, with the rules that GitHub's code scanning needs,
has nothing to say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from check_examples import EXAMPLES, write

from cdk_rehearse.cli.formats import print_rehearsal
from cdk_rehearse.updates.codes import CODES
from cdk_rehearse.updates.places import with_places
from cdk_rehearse.updates.problems import problem
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.versions import NONE, read_version
from triton_model_check.model_repository import ModelRepository
from triton_model_check.reporting.formats import print_results
from triton_model_check.reporting.results import Result

PROJECT = Path(__file__).resolve().parents[2]
#: The program itself: its wrapper for npm hands the semicolon to a shell.
VALIDATOR = PROJECT / "node_modules" / "@microsoft" / "sarif-multitool-linux" / "Sarif.Multitool"
#: The owner has not published the project, so there is no page about the program.
NO_PAGE = "SARIF2005"


pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the package is the validator's for Linux"
)


def _validate(found: Path, log: Path) -> None:
    """Expect nothing from the validator but the note about the missing page."""
    command = [
        str(VALIDATOR),
        "validate",
        str(found),
        "--rule-kind",
        "Sarif;Ghas",
        "--output",
        str(log),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert log.exists(), done.stdout + done.stderr
    (run,) = json.loads(log.read_text(encoding="utf-8-sig"))["runs"]
    assert {each["ruleId"] for each in run["results"]} <= {NO_PAGE}, done.stdout


def test_validator_accepts_findings_of_all_rules(tmp_path: Path) -> None:
    """The findings of an example of each rule give neither an error nor a warning
    of SARIF and of GitHub.
    """
    results = []
    for number, example in enumerate(EXAMPLES.values()):
        repository = ModelRepository.from_directory(write(example.failing, tmp_path / str(number)))
        results.append(Result(repository.check(example.target, is_packed=False)))
    found = tmp_path / "found.sarif"
    print_results(results, "sarif", str(found))
    _validate(found, tmp_path / "log.sarif")
    (run,) = json.loads(found.read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) > len(EXAMPLES) - 1


def test_validator_accepts_problems_of_all_codes(tmp_path: Path) -> None:
    """The same of a rehearsal with a problem of each code, in a template."""
    template = tmp_path / "shop.json"
    queue = {"Type": "AWS::SQS::Queue", "Metadata": {"aws:cdk:path": "Shop/Jobs/Resource"}}
    template.write_text(json.dumps({"Resources": {"Jobs": queue}}, indent=1))
    problems = tuple(problem(code, "Jobs", "is wrong", "fix it", stack="shop") for code in CODES)
    rehearsal = Rehearsal({"shop": "UPDATE_COMPLETE"}, problems=problems, resources=1)
    found = tmp_path / "found.sarif"
    print_rehearsal(with_places(rehearsal, NONE, read_version(template)), "sarif", str(found))
    _validate(found, tmp_path / "log.sarif")
    (run,) = json.loads(found.read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) == len(CODES)
