"""What importing and ``--help`` load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from workspace import PACKAGES, PROJECT

from constructs_triton.cli import COMMANDS

HEAVY = {"jsii", "aws_cdk", "constructs", "grpc", "gevent", "tritonclient"}

THIRD_PARTY = {"boto3", "botocore", "lazy_loader", "ml_dtypes", "numpy", "urllib3"}
MODELS = Path(__file__).resolve().parents[2] / "assets" / "model_repositories" / "digits"

#: What a synth of one endpoint does without: other questions than "What is deployed?", the rooms of
#: commands, what the app does not use, and packages of others that take long to import.
NEEDLESS_AT_SYNTH = {
    *(set(PACKAGES) - {"constructs_triton", *PACKAGES["constructs_triton"].floors}),
    "constructs_triton.cli",
    "constructs_triton.testing",
    "constructs_triton.cdk.inference_component",
    "constructs_triton.cdk.monitoring.alarms",
    "constructs_triton.cdk.monitoring.dashboard",
    "constructs_triton_core.aws_reader",
    "constructs_triton_core.cloud_assembly",
    "constructs_triton_core.processes",
    "constructs_triton_core.program",
    "triton_model_check.cli",
    "triton_model_check.builder",
    "triton_model_check.reporting",
    *(
        "boto3",
        "botocore",
        "google.protobuf.text_format",
        "numpy",
        "onnx",
        "platformdirs",
        "rich",
        "yaml",
    ),
}

REPORT = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def _late_modules() -> set[str]:
    """The modules that pyproject.toml allows inside functions only,
    without those of the standard library.
    """
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    listed = project["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    return {name for name in listed if name.split(".")[0] not in sys.stdlib_module_names}


def _loaded(code: str, environment: Mapping[str, str] | None = None) -> set[str]:
    """The modules that are loaded after the code, with and without their submodules' names."""
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{REPORT}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return _with_packages(json.loads(run.stdout.splitlines()[-1]))


def _with_packages(names: list[str]) -> set[str]:
    return {*names, *(name.split(".")[0] for name in names)}


@pytest.mark.parametrize(
    "code",
    [
        "import constructs_triton",
        "import constructs_triton_client",
        "import constructs_triton_client.wire",
        "import triton_model_check.model_repository",
        "import constructs_triton_tools.planning",
    ],
)
def test_import_starts_nothing(code: str) -> None:
    """The package, the client and the pure layers load neither the CDK, nor grpc, nor boto3."""
    assert not _loaded(code) & (HEAVY | {"boto3", "botocore"})


#: Prints the exit code of the help of each command, and the modules that it has loaded. Each runs
#: in a copy of a process with the command line alone, which starts faster than Python.
EACH_HELP = """
import json, os, sys
from constructs_triton.cli import COMMANDS, main

for name in ("", *COMMANDS):
    sys.stdout.flush()
    if os.fork() == 0:
        try:
            code = main([*name.split(), "--help"])
        except SystemExit as stop:
            code = stop.code
        print()
        print(json.dumps(["HELP", name, code, sorted(sys.modules)]), flush=True)
        os._exit(0)
    os.wait()
"""


def test_help_starts_nothing() -> None:
    """The help of each command loads neither the CDK, nor grpc,
    nor a module that is imported late.
    """
    run = subprocess.run(
        [sys.executable, "-c", EACH_HELP], capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('["HELP"')]
    assert {name: code for _, name, code, _ in lines} == dict.fromkeys(["", *COMMANDS], 0)
    forbidden = HEAVY | _late_modules()
    found = {name: forbidden & _with_packages(modules) for _, name, _, modules in lines}
    assert not {name: heavy for name, heavy in found.items() if heavy}


def test_check_loads_no_numpy() -> None:
    """``check`` reads and checks models without the CDK, grpc, boto3 and NumPy."""
    code = f"""
from constructs_triton.cli import main
assert main(["check", {str(MODELS)!r}]) == 0
"""
    loaded = _loaded(code)
    assert not loaded & (HEAVY | {"boto3", "botocore", "numpy"})
    assert "google" in loaded


def test_local_run_starts_servers_first() -> None:
    """What a run imports before it starts its servers has no web server, no boto3 and no NumPy."""
    code = "import constructs_triton_tools.local.run, constructs_triton_tools.local.bundled_servers"
    assert not _loaded(code) & (HEAVY | {"aiohttp", "boto3", "botocore", "numpy"})
    first = "import constructs_triton_tools.local.run, constructs_triton_tools.local.server.machine"
    assert not _loaded(first) & {"google", "triton_model_check.checks", "yaml"}


def test_client_is_lazy() -> None:
    """Importing the client loads no other package,
    and its first transport no boto3 and no urllib3.
    """
    assert not _loaded("import constructs_triton_client") & THIRD_PARTY
    code = (
        "from constructs_triton_client import HttpTransport, SageMakerTransport; "
        "SageMakerTransport('digits')"
    )
    assert not _loaded(code) & (THIRD_PARTY - {"numpy"})


@pytest.mark.parametrize("example", ["basic", "ensemble"])
def test_app_loads_what_it_uses(example: str, tmp_path: Path) -> None:
    """An app with one endpoint loads none of what it does without,
    also if no cache knows its models.
    """
    environment = {
        **os.environ,
        "CONSTRUCTS_TRITON_CACHE_DIR": str(tmp_path),
        "CDK_VALIDATION": "false",  # cfn-guard's rules are not ours
        "CDK_OUTDIR": str(tmp_path / "out"),
    }
    app = PROJECT / "examples" / example / "app.py"
    loaded = _loaded(
        f"import runpy; runpy.run_path({str(app)!r}, run_name='__main__')", environment
    )
    assert {"constructs_triton.cdk.endpoint", "triton_model_check.model_repository"} <= loaded
    assert not loaded & NEEDLESS_AT_SYNTH


def test_needless_modules_exist() -> None:
    """The list has no module that was renamed, which no app could load."""
    assert [name for name in sorted(NEEDLESS_AT_SYNTH) if find_spec(name) is None] == []


def test_pytest_plugin_starts_nothing() -> None:
    """A test run without the plugin's fixtures loads neither the CDK, nor boto3,
    nor NumPy, nor syrupy.
    """
    code = """
import os, pytest
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
options = ["-p", "constructs_triton.testing.plugin", "-c", os.devnull, "--rootdir", "/"]
assert pytest.main([*options, "--noconftest", "--help"]) == 0
"""
    loaded = _loaded(code)
    assert not loaded & (HEAVY | {"boto3", "botocore", "numpy", "syrupy", "cfnlint", "aiohttp"})
    assert "constructs_triton" in loaded
