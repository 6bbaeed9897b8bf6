"""``constructs-triton tune`` with the Triton server,
on a model whose best configuration is known.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tuned_models import write_model

from constructs_triton.cli import main

BUDGET_MINUTES = 5
MINUTES = "3.5"
#: On a machine that is busy with other tests, further runs continue the search of the first.
ATTEMPTS = 3
PRICE = ("--price", "local=1", "--json")


def command(models: Path, output: Path) -> list[str]:
    limits = ["--latency-ms", "100", "--budget-minutes", MINUTES, "--step-seconds", "3"]
    return ["tune", str(models), *limits, "-o", str(output), "--yes"]


def interrupt_after_the_first_row(words: list[str]) -> int:
    """Start the command, press Ctrl-C when the first row is there, and return the exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "constructs_triton.cli", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if " your configuration " in line:
                process.send_signal(signal.SIGINT)
                break
        process.communicate()
    return process.returncode


def test_search_finds_two_instances_after_an_interruption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With time for each item and two slots, two instances without batching win, also after Ctrl-C.

    The interrupted run writes a report, the second one uses its results, and ``plan`` reads the
    benchmark.
    """
    models, output = tmp_path / "models", tmp_path / "tuned"
    write_model(models, "slots")
    assert interrupt_after_the_first_row(command(models, output)) == 130
    report = (output / "report.md").read_text()
    # On a busy machine, the rate of the configuration is not known yet.
    is_early = "ended before the rate of your configuration was known" in report
    assert is_early or report.startswith("Stopped: so far nothing holds more")

    for _ in range(ATTEMPTS):
        assert main([*command(models, output), "--json"]) == 0
        text = capsys.readouterr()
        assert "results of an earlier run are used again" in text.err
        result = json.loads(text.out)
        if not any("ended early" in note for note in result["notes"]):
            break
    assert result["best"]["m"]["instances"] == 2
    assert result["comparison"]["low"] > 1
    first, *others = result["tried"]
    assert first["outcome"] == "your configuration"
    assert others
    assert "count: 2" in (output / "m" / "config.pbtxt").read_text()

    assert (
        main(["plan", str(output / "benchmark.csv"), "--requests-per-second", "100", *PRICE]) == 0
    )
    plans = json.loads(capsys.readouterr().out)["plans"]
    present, tuned = (plan["initial_instance_count"] for plan in plans)
    assert tuned < present
