"""``constructs-triton doctor`` says what works on this machine."""

import argparse
import json
import tomllib
from pathlib import Path

import pytest

from constructs_triton_tools.cli import doctor

PROJECT = Path(__file__).resolve().parents[4]
#: Extras of the project's own development, the one that contains others, and the server, which is
#: a part of its own.
OTHERS = {"all", "dev", "docs", "examples", "server"}


def test_every_extra_is_looked_for() -> None:
    """The command knows each extra that users install,
    and every module that it looks for is one of it.
    """
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"]) - OTHERS


def test_what_is_missing_has_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without programs and credentials, each part says what to do,
    and apps cannot be synthesized.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    assert doctor.run(parser.parse_args(["--json"])) == 1
    parts = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert parts["Python"]["state"] == "works"
    assert parts["Node.js"]["details"] == "not found; install Node.js 22 or 24"
    assert "npm install -g aws-cdk@" in parts["cdk"]["details"]
    assert "podman is not installed" in parts["podman"]["details"]
    assert parts["AWS"]["details"] == "no credentials; run `aws configure`, or set AWS_PROFILE"


def test_cdk_of_the_documentation_is_named() -> None:
    """The version of the CDK's command line is the one of package.json."""
    version = json.loads((PROJECT / "package.json").read_text())["dependencies"]["aws-cdk"]
    assert f"aws-cdk@{version}" == doctor.CDK
