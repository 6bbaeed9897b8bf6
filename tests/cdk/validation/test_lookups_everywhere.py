"""Each string that a construct, a function or a method takes, as the CDK has it before the lookup.

The arguments come from the tests of tokens, so a new one is asked too.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, is_typeddict

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from cdk_apps import ENVIRONMENT, write_repository
from test_tokens_everywhere import FOUND, GPU, MODELS
from test_tokens_of_functions import OPTIONS, function_cases, option_cases, use_of_function
from test_tokens_of_methods import method_cases, methods, use_of_method

import constructs_triton as library
from constructs_triton import ModelSource, TritonModelRepository, TritonScalableInstanceCount
from constructs_triton.cdk.repository.properties import CompressionType

FILES = CompressionType.NONE


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The models of all endpoints, written once."""
    MODELS[:] = [write_repository(tmp_path_factory.mktemp("lookups") / "models")]


def takes(annotation: Any) -> str:
    """Return whether an argument is a string or a list of strings; empty if it is neither."""
    text = str(annotation).replace("PathLike[str]", "str")
    if "Mapping[str, Sequence[str]]" in text:
        return "lists"
    if re.search(r"(Sequence|list|tuple)\[str", text):
        return "list"
    return "string" if re.search(r"\bstr\b|Literal\[", re.sub(r"\w+\[str.*", "", text)) else ""


def annotations_of(target: Any) -> dict[str, Any]:
    """Return the annotation of each parameter."""
    return {name: each.annotation for name, each in inspect.signature(target).parameters.items()}


def initializer(owner: Any) -> Any:
    """Return what has the signature of a class."""
    return owner if hasattr(owner, "__signature__") else owner.__init__


def cases() -> Iterator[Any]:
    """Yield each argument that is a string: a use, its name, and how it takes a string."""
    for case, use, name in FOUND:
        owner, _, _ = case.partition(".")
        target = getattr(library, owner, None) or getattr(TritonScalableInstanceCount, owner)
        function = initializer(target) if inspect.isclass(target) else target
        yield case, use, name, takes(annotations_of(function)[name])

    for param in function_cases():
        owner, function, name = param.values
        found = takes(annotations_of(getattr(owner, function))[name])
        yield param.id, use_of_function(owner, function), name, found

    for param in option_cases():
        owner, name = param.values
        hints = owner.__annotations__ if is_typeddict(owner) else annotations_of(initializer(owner))
        yield param.id, OPTIONS[owner], name, takes(hints[name])

    for param in method_cases():
        owner, method, name = param.values
        parameter = inspect.signature(dict(methods(owner))[method]).parameters.get(name)
        found = "" if parameter is None else takes(parameter.annotation)
        if method.startswith("grant") and name == "actions":
            found = "string"
        yield param.id, use_of_method(owner, method, name), name, found


CASES = [case for case in cases() if case[-1]]
OWNERS = sorted({case.partition(".")[0] for case, *_ in CASES})


@pytest.mark.parametrize("owner", OWNERS)
def test_a_looked_up_string_never_fails_the_first_synthesis(owner: str) -> None:
    """An argument that takes a string takes the dummy of a lookup, and the assembly asks for the
    value.
    """
    # Each argument has a stack and a lookup of its own, in an app that is synthesized once. Names
    # of endpoints are unique in an account, so each stack has its own account too.
    app = cdk.App(builtin_cloud_formation_validation=False)
    looked_up = set()
    for number, (case, use, name, form) in enumerate(CASES):
        if case.partition(".")[0] != owner:
            continue
        place = cdk.Environment(account=f"{123456789012 + number}", region=ENVIRONMENT.region)
        stack = cdk.Stack(app, f"Test{number}", env=place)
        value: Any = ssm.StringParameter.value_from_lookup(stack, f"/digits/{case}")
        looked_up.add(f"/digits/{case}")
        forms = {"string": value, "list": [value], "lists": {"other": [value]}}
        try:
            use(stack, {name: forms[form]})
        except Exception as error:
            error.add_note(f"argument {case}")
            raise

    missing = json.loads(Path(app.synth().directory, "manifest.json").read_text())["missing"]
    assert looked_up <= {each["props"].get("parameterName") for each in missing}


def test_paths_may_contain_a_lookup() -> None:
    """A folder whose name contains a looked-up value is used by each type of endpoint, in each form
    that models are stored in.
    """
    app = cdk.App()
    stack = cdk.Stack(app, "Test", env=ENVIRONMENT)
    version = ssm.StringParameter.value_from_lookup(stack, "/digits/version")
    source = ModelSource.from_directory(Path("models") / version)
    uses: list[tuple[Any, dict[str, Any]]] = [
        (library.TritonEndpoint, {}),
        (library.TritonEndpoint, {"model": "digits", "compression_type": FILES}),
        (library.TritonEndpoint, {"container_metrics": True, "endpoint_name": "digits"}),
        (library.TritonEnsembleEndpoint, {"ensemble": "pipeline"}),
        (library.TritonMultiModelEndpoint, {}),
    ]
    for number, (owner, options) in enumerate(uses):
        models = TritonModelRepository(stack, f"Models{number}", source=source)
        models.add_model(version, source)
        endpoint = owner(stack, f"E{number}", model_repository=models, instance_type=GPU, **options)
        assert models.target_models["digits"] == models.target_models[version]
        if options.get("container_metrics"):
            assert endpoint.container_metrics.queue_time("digits")
    endpoint.grant_invoke(iam.User(stack, "User"), target_models=["digits", version])
    assert json.loads(Path(app.synth().directory, "manifest.json").read_text())["missing"]
