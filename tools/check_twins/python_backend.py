"""Twins of the checks of Python models."""

# Configurations read best unbroken.

from __future__ import annotations

from check_twins.repositories import (
    CLASS,
    ENVIRONMENT,
    ENVIRONMENT_HERE,
    HEAD,
    Twin,
    added,
    one,
)
from constructs_triton.model_config.target import Target

TWINS: dict[str, Twin] = {
    "python-model-file": Twin({"m/config.pbtxt": HEAD, "m/1/models.py": CLASS}, one(HEAD)),
    "python-syntax": Twin(one(HEAD, **{"m/1/model.py": CLASS + "def\n"}), one(HEAD)),
    "python-syntax-other-version": Twin(
        one(HEAD, **{"m/1/model.py": CLASS + "def\n"}),
        one(HEAD),
        Target(default_model="m", image_version="24.09"),
    ),
    "python-class": Twin(one(HEAD, **{"m/1/model.py": CLASS.replace("Triton", "")}), one(HEAD)),
    "python-execute": Twin(one(HEAD, **{"m/1/model.py": CLASS.replace("execute", "exec")}), one(HEAD)),
    "python-environment": Twin(ENVIRONMENT_HERE, {**ENVIRONMENT_HERE, "m/env": None}),
    "python-environment-relative": added(ENVIRONMENT % "env.tar.gz", ENVIRONMENT % "/opt/env.tar.gz"),
    "python-environment-version": Twin(
        {**ENVIRONMENT_HERE, "m/env/lib/python3.8": None},
        {**ENVIRONMENT_HERE, "m/env/lib/python3.12": None},
        Target(default_model="m", image_version="26.05"),
    ),
    "python-cpu-only-inputs": added(
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }\n',
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }\n',
    ),
    "python-no-tensors": Twin(one(""), one(HEAD)),
}
