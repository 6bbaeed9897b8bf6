"""Configurations that ``--model-config-name`` chooses are those that synth checks."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_apps import CPU, add_endpoint, write_model

from constructs_triton import TritonEnvironment
from constructs_triton_core.errors import RepositoryError


@pytest.mark.parametrize(
    "arguments", [["--model-config-name=large"], ["--model-config-name", "large"]]
)
def test_the_chosen_configuration_is_checked(
    stack: cdk.Stack, tmp_path: Path, arguments: list[str]
) -> None:
    """The server reads configs/large.pbtxt, so a mistake there is an error, with its file."""
    write_model(tmp_path, "model")
    chosen = tmp_path / "model" / "configs" / "large.pbtxt"
    chosen.parent.mkdir()
    chosen.write_text("max_batch_size: NINE\n")
    with pytest.raises(RepositoryError, match=r"model/configs/large\.pbtxt:1"):
        add_endpoint(
            stack,
            tmp_path,
            instance_type=CPU,
            environment=TritonEnvironment(additional_args=arguments),
        )


def test_other_configurations_are_not(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without the argument the server reads config.pbtxt alone."""
    write_model(tmp_path, "model")
    chosen = tmp_path / "model" / "configs" / "large.pbtxt"
    chosen.parent.mkdir()
    chosen.write_text("max_batch_size: NINE\n")
    add_endpoint(stack, tmp_path, instance_type=CPU)
