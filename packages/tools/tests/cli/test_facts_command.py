"""``constructs-triton facts`` prints the results of the look-ups."""

import argparse
import json
from pathlib import Path

import pytest

from constructs_triton_core.errors import FactNotFoundError
from constructs_triton_tools.cli import facts
from triton_model_check.facts.compatibility import RULES
from triton_model_check.facts.environment import variables

GUIDE = Path(__file__).parents[4] / "docs" / "reference" / "limits.md"


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    facts.add_arguments(parser)
    return facts.run(parser.parse_args(words))


def test_image_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The instance type determines the image and its host AMI."""
    assert _run("image", "--region", "eu-west-1", "--instance-type", "ml.g5.xlarge", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["uri"].endswith("eu-west-1.amazonaws.com/sagemaker-tritonserver:26.05-py3")
    assert (answer["inference_ami"], answer["findings"]) == (
        "al2023-ami-sagemaker-inference-gpu-4-1",
        [],
    )


def test_image_without_instance_type_shows_both(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an instance type, the images for GPUs and for CPUs are printed."""
    assert _run("image", "--region", "cn-north-1", "--version", "25.04", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["removed_backends"] == [
        "tensorflow",
        "tensorflow_graphdef",
        "tensorflow_savedmodel",
    ]
    assert answer["cpu_uri"] == answer["gpu_uri"] + "-cpu"


def test_incompatible_image_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """An image that does not run on the type's GPUs exits with 1 and the reason."""
    assert _run("image", "--region", "eu-west-1", "--instance-type", "ml.p3.2xlarge") == 1
    captured = capsys.readouterr()
    assert "error[gpu-older-than-image]" in captured.err
    assert "sagemaker-tritonserver:26.05-py3" in captured.out


def test_pair_without_a_published_ami_warns_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """If no source names an AMI for the image on the type, the warning is among the findings."""
    words = (
        "--region",
        "eu-west-1",
        "--version",
        "25.04",
        "--instance-type",
        "ml.g6e.xlarge",
        "--json",
    )
    assert _run("image", *words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["inference_ami"] is None
    assert [finding["code"] for finding in answer["findings"]] == ["inference-ami-unsourced"]


def test_region_without_the_version_is_an_error() -> None:
    """The error is that of the look-up."""
    with pytest.raises(FactNotFoundError, match=r"25\.04"):
        _run("image", "--region", "cn-north-1")


def test_instance_as_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Both forms have the same facts."""
    assert _run("instance", "ml.g5.12xlarge") == 0
    table = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert [table[row].strip() for row in ("gpus", "gpu_model", "is_known")] == ["4", "A10G", "yes"]
    assert _run("instance", "ml.g5.12xlarge", "--json") == 0
    assert json.loads(capsys.readouterr().out)["gpus"] == 4


def test_unknown_instance_warns_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """A type that is not in the table gives a warning and no error."""
    assert _run("instance", "ml.g55.xlarge") == 0
    assert 'did you mean "ml.g5.xlarge"?' in capsys.readouterr().err


def test_environment_lists_the_variables_of_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    """With a version, variables that are newer or no longer read are left out.

    In a pipe a table is 200 characters wide.
    """
    assert _run("environment") == 0
    shown = capsys.readouterr().out
    assert all(row.name in shown for row in variables().values())
    assert max(map(len, shown.splitlines())) == 200
    assert _run("environment", "--version", "25.04", "--json") == 0
    keywords = {row["keyword"] for row in json.loads(capsys.readouterr().out)}
    assert keywords == set(variables()) - {"tensorflow_version"}
    assert _run("environment", "--version", "24.09", "--json") == 0
    assert "inference_type" not in {row["keyword"] for row in json.loads(capsys.readouterr().out)}


def test_guide_lists_every_rule() -> None:
    """The page of limits and facts has each check of an image and its instance type."""
    rows = [f"| `{rule.code}` | {rule.severity} | {rule.summary} |" for rule in RULES]
    page = GUIDE.read_text(encoding="utf-8")
    assert "\n".join(rows) in page
