"""``constructs-triton``: the table of all commands, which are modules of the packages."""

from __future__ import annotations

import os
from collections.abc import Sequence

from constructs_triton_core.program.program import Command, Program

__all__ = ["COMMANDS", "COMMAND_GROUPS", "PROGRAM", "main"]

_CHECK, _TOOLS = "triton_model_check.cli", "constructs_triton_tools.cli"
_PLAN_COMMANDS = {
    "recommender": Command(
        f"{_TOOLS}.recommender",
        "write Inference Recommender jobs, and read their results",
        "load",
    ),
}
_SIMULATE_COMMANDS = {
    "models": Command(
        f"{_TOOLS}.simulate.models",
        "simulate how many models a multi-model endpoint keeps loaded",
        "load",
    ),
}
_COST_COMMANDS = {
    "idle": Command(
        f"{_TOOLS}.deployed.idle", "find endpoints without calls, and what they cost", "load"
    ),
    "prices": Command(f"{_TOOLS}.prices", "fetch prices of instances from AWS", "load"),
}
COMMAND_GROUPS = {
    "First steps": {
        "project": Command(f"{_TOOLS}.project", "create a project with an app, a model and tests"),
        "model": Command(
            f"{_CHECK}.model.command",
            "create a model's folder from a model file, such as model.onnx",
        ),
        "check": Command(f"{_TOOLS}.check", "find the errors in a model repository"),
        "local": Command(
            f"{_TOOLS}.local", "run endpoints on this machine with the Triton server", "local"
        ),
        "invoke": Command(
            f"{_TOOLS}.invoke", "send tensors to an endpoint and print its response", "load"
        ),
        "status": Command(
            f"{_TOOLS}.deployed.status", "show what deployed endpoints are doing", "load"
        ),
        "diagnose": Command(f"{_TOOLS}.deployed.diagnose", "find the cause of a failure", "load"),
        "load-test": Command(
            f"{_TOOLS}.load_test", "find the highest load that an endpoint holds", "load"
        ),
    },
    "Models, packages and artifacts": {
        "explain": Command(
            "constructs_triton_core.program.explain", "explain the code of a finding"
        ),
        "config": Command(f"{_CHECK}.config", "show configurations, tensors and ensemble graphs"),
        "graph": Command(f"{_TOOLS}.assembly.graph", "draw what the endpoints of a template serve"),
        "memory": Command(f"{_TOOLS}.memory", "add up what the models take of GPUs and host"),
        "pack": Command(f"{_CHECK}.pack", "write a model repository as .tar.gz archives"),
        "env": Command(
            f"{_TOOLS}.env", "build Python environments for models of the Python backend"
        ),
        "compile": Command(f"{_TOOLS}.compile.command", "build TensorRT plans in SageMaker jobs"),
    },
    "Your machine": {
        "doctor": Command(f"{_TOOLS}.doctor", "show what works on this machine"),
        "completion": Command(
            f"{__name__}.completion", "print the script for completion by a shell"
        ),
        "rehearse": Command(
            f"{__name__}.rehearse", "rehearse an update in a simulated AWS account", "rehearse"
        ),
    },
    "Endpoints in AWS": {
        "verify": Command(
            f"{_TOOLS}.verify", "compare the responses of an endpoint with recorded ones", "load"
        ),
        "logs": Command(
            f"{_TOOLS}.deployed.logs", "print the logs of an endpoint's containers", "load"
        ),
        "stop": Command(
            f"{_TOOLS}.deployed.stop", "delete an endpoint, and keep what creates it again", "load"
        ),
        "start": Command(
            f"{_TOOLS}.deployed.start", "create a stopped endpoint again, with its scaling", "load"
        ),
        "adopt": Command(
            f"{_TOOLS}.deployed.adopt",
            "write an app for an endpoint that was created by hand",
            "load",
        ),
        "models": Command(
            f"{_TOOLS}.models",
            "change the models of a multi-model endpoint",
            "load",
        ),
        "capture": Command(
            f"{_TOOLS}.deployed.capture", "read the requests that an endpoint has captured", "load"
        ),
    },
    "Planning": {
        "tune": Command(
            f"{_TOOLS}.tune",
            "find the configuration of a model that holds the highest rate",
            "local",
        ),
        "plan": Command(
            f"{_TOOLS}.plan",
            "choose instances and scaling targets from a benchmark",
            "load",
            commands=_PLAN_COMMANDS,
        ),
        "simulate": Command(
            f"{_TOOLS}.simulate",
            "simulate a scaling policy on a traffic pattern",
            commands=_SIMULATE_COMMANDS,
        ),
        "cost": Command(
            f"{_TOOLS}.assembly.cost",
            "calculate what the endpoints of a template cost",
            commands=_COST_COMMANDS,
        ),
        "facts": Command(f"{_TOOLS}.facts", "look up images, instance types and variables"),
    },
}
_EXAMPLES = """\
  constructs-triton model new model.onnx   create models/model from a model file
  constructs-triton check models           find errors before you deploy
  constructs-triton local up cdk.out       run the endpoints that `npx cdk synth` wrote
  constructs-triton load-test NAME --random --yes -o benchmark.csv
  constructs-triton invoke NAME --input x=1.0,2.0:FP32 --endpoint-url http://127.0.0.1:8080"""
PROGRAM = Program(
    "constructs-triton",
    "Check, pack, run and call NVIDIA Triton models for Amazon SageMaker endpoints.",
    _EXAMPLES,
    COMMAND_GROUPS,
)
COMMANDS = PROGRAM.commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; or complete the command line of a shell."""
    if "_ARGCOMPLETE" in os.environ:
        from constructs_triton.cli.completion import complete  # noqa: PLC0415 - for shells only

        complete(PROGRAM)
        return 0
    return PROGRAM.main(argv)
