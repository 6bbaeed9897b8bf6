"""Examples of the checks of Python models."""

# Configurations read best unbroken.

from __future__ import annotations

from check_examples.repositories import (
    CLASS,
    ENVIRONMENT,
    ENVIRONMENT_HERE,
    HEAD,
    Example,
    Files,
    added,
    one,
)
from constructs_triton.model_config.target import Target

_CALL = "import triton_python_backend_utils as pb_utils\nREQUEST = pb_utils.InferenceRequest(model_name={})\n"

_EXECUTE = "class TritonPythonModel:\n    def execute(self, requests):\n        {}\n"


def _calling(name: str) -> Files:
    """A model ``m`` that calls another one, and a model ``scale``."""
    scale = {"scale/config.pbtxt": HEAD, "scale/1/model.py": CLASS}
    return one(HEAD, **{"m/1/model.py": CLASS + _CALL.format(name)}, **scale)


EXAMPLES: dict[str, Example] = {
    "python-model-file": Example({"m/config.pbtxt": HEAD, "m/1/models.py": CLASS}, one(HEAD)),
    "python-syntax": Example(one(HEAD, **{"m/1/model.py": CLASS + "def\n"}), one(HEAD)),
    "python-syntax-other-version": Example(
        one(HEAD, **{"m/1/model.py": CLASS + "def\n"}),
        one(HEAD),
        Target(default_model="m", image_version="24.09"),
    ),
    "python-class": Example(one(HEAD, **{"m/1/model.py": CLASS.replace("Triton", "")}), one(HEAD)),
    "python-execute": Example(one(HEAD, **{"m/1/model.py": CLASS.replace("execute", "exec")}), one(HEAD)),
    "python-execute-returns-none": Example(
        one(HEAD, **{"m/1/model.py": _EXECUTE.format("if requests:\n            return [None]")}),
        one(HEAD, **{"m/1/model.py": _EXECUTE.format("return [None for request in requests]")}),
    ),
    "python-environment": Example(ENVIRONMENT_HERE, {**ENVIRONMENT_HERE, "m/env": None}),
    "python-environment-relative": added(ENVIRONMENT % "env.tar.gz", ENVIRONMENT % "/opt/env.tar.gz"),
    "python-environment-version": Example(
        {**ENVIRONMENT_HERE, "m/env/lib/python3.8": None},
        {**ENVIRONMENT_HERE, "m/env/lib/python3.12": None},
        Target(default_model="m", image_version="26.05"),
    ),
    "python-cpu-only-inputs": added(
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }\n',
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }\n',
    ),
    "python-called-model": Example(_calling('"scaled"'), _calling('"scale"'), Target(default_model="m")),
    "python-called-model-unknown": Example(
        _calling("NAMES[0]"), _calling('"scale"'), Target(default_model="m")
    ),
    "python-calls-on-multi-model-endpoint": Example(
        _calling('"scale"'),
        _calling('"scale"'),
        Target(mode="multi-model"),
        fixed_target=Target(default_model="m"),
    ),
    "python-no-tensors": Example(one(""), one(HEAD)),
}
