"""The exit codes of every command: 2 for what cannot be looked at, 1 for what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workspace import PACKAGES

from constructs_triton.cli import COMMANDS, main

EXIT_CODES = PACKAGES["constructs_triton_core"].root / "program" / "exit_codes.py"
MODEL = """\
name: "m"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: FP32 dims: [ 1 ] } ]
"""
BENCHMARK = """\
configuration,instance_type,invocations_per_minute,latency_ms,price_per_hour
fp32,ml.g5.xlarge,600,50,1.4
"""

ROLE = "arn:aws:iam::111122223333:role/r"

#: Commands with a path that does not exist. Those that are missing here read no file.
ABSENT = [
    "model new absent.onnx",
    "check absent",
    "config show absent",
    "graph absent",
    "pack absent -o out",
    "env build absent.txt -o out",
    f"compile absent.onnx --instance-type ml.g5.xlarge --region eu-west-1 --dry-run --role {ROLE}",
    "local up absent",
    "rehearse absent absent",
    "invoke e --input x=@absent.npy --endpoint-url http://127.0.0.1:9",
    "verify http://127.0.0.1:9 absent.json",
    "diagnose --log-file absent.log",
    "models add m absent.tar.gz --bucket b --region eu-west-1",
    "capture read absent",
    "load-test e --requests absent.jsonl --endpoint-url http://127.0.0.1:9 -o out.csv",
    "plan absent.csv --requests-per-second 5",
    "simulate absent.csv --throughput 5 --target 3",
    "simulate models absent --instance-type ml.g5.xlarge --requests-per-second 5",
    "cost absent",
    "env show absent.tar",
    "tune absent --latency-ms 50 --yes",
]
#: Commands that can look at their files, and find an error in the model, the plan or the endpoint.
WRONG = [
    "check models",
    "pack models -o out",
    "config show models",
    "local up models",
    "diagnose --log-file triton.log",
    "model new broken.onnx",
    "plan benchmark.csv --requests-per-second 5 --latency-ms 1",
    "facts image --version 26.05 --instance-type ml.inf2.xlarge --region eu-west-1",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wrong model, a wrong model file and the log of a failure; no AWS settings."""
    version = tmp_path / "models" / "m" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(MODEL)
    (version / "model.py").write_text("class TritonPythonModel:\n    pass\n")
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff\xff")
    (tmp_path / "triton.log").write_text(
        "failed to load 'm' version 1: Internal: ModuleNotFoundError: No module named 'x'\n"
    )
    (tmp_path / "benchmark.csv").write_text(BENCHMARK)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def code_of(words: list[str]) -> int:
    """Return the exit code, also that of arguments which argparse refuses."""
    try:
        return main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_option_is_not_looked_at(command: str) -> None:
    """Every command ends with 2 after an option that it does not have."""
    assert code_of([*command.split(), "--no-such-option"]) == 2


@pytest.mark.parametrize("line", ABSENT)
def test_path_that_does_not_exist_is_not_looked_at(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 2, names the path and writes nothing."""
    before = set(folder.rglob("*"))
    assert code_of(line.split()) == 2
    assert "absent" in capsys.readouterr().err
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_has_another_code_than_what_is_absent(line: str) -> None:
    """The command read its files, so it ends with 1."""
    assert code_of(line.split()) == 1


def test_codes_have_one_place() -> None:
    """No module but that of the exit codes gives a number a name."""
    own = re.compile(r"^_?EXIT_\w+.*= *\d", re.MULTILINE)
    modules = (path for each in PACKAGES.values() for path in each.modules)
    found = [
        path
        for path in modules
        if "cli" in path.parts or "program" in path.parts
        if own.search(path.read_text())
    ]
    assert found == [EXIT_CODES]
