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

from triton_model_check.model_repository import ModelRepository
from triton_model_check.reporting.formats import print_results
from triton_model_check.reporting.results import Result

PROJECT = Path(__file__).resolve().parents[2]
#: The program itself: its wrapper for npm hands the semicolon to a shell.
VALIDATOR = PROJECT / "node_modules" / "@microsoft" / "sarif-multitool-linux" / "Sarif.Multitool"
#: The owner has not published the project, so there is no page about the program.
NO_PAGE = "SARIF2005"


@pytest.mark.skipif(sys.platform != "linux", reason="the package is the validator's for Linux")
def test_validator_accepts_findings_of_all_rules(tmp_path: Path) -> None:
    """The findings of an example of each rule give neither an error nor a warning
    of SARIF and of GitHub.
    """
    results = []
    for number, example in enumerate(EXAMPLES.values()):
        repository = ModelRepository.from_directory(write(example.failing, tmp_path / str(number)))
        results.append(Result(repository.check(example.target, is_packed=False)))
    found, log = tmp_path / "found.sarif", tmp_path / "log.sarif"
    print_results(results, "sarif", str(found))
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
    assert (
        len(json.loads(found.read_text(encoding="utf-8"))["runs"][0]["results"]) > len(EXAMPLES) - 1
    )
