"""The text of app.py, of its test, and of imported.py."""

from __future__ import annotations

import re

from constructs_triton_tools.operations.adopting.python_text import assignment, call, literal
from constructs_triton_tools.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton_tools.operations.adopting.stack.app_template import APP, MODULES
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode

_INDENT = " " * 8
_WIDTH = 88

TEST_TEXT = '''\
"""The template of the endpoint, compared with a recorded one."""

from constructs_triton.testing import TritonTemplateExtension


def test_template(stack, snapshot):
    """The template is as recorded. After a change: python -m pytest --snapshot-update"""
    assert stack == snapshot(extension_class=TritonTemplateExtension)
'''

_IMPORTED = '''\
"""The stack with the endpoint alone and as it runs, for `cdk import`; \
app.py replaces it afterwards."""

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker

app = cdk.App()
environment = cdk.Environment(account="{account}", region="{region}")
stack = cdk.Stack(app, "Endpoint", stack_name="{stack}", env=environment)
endpoint = sagemaker.CfnEndpoint(
    stack,
    "Endpoint",
    endpoint_name="{name}",
    endpoint_config_name="{config}",
)
endpoint.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
app.synth()
'''


def imported_text(running: RunningEndpoint) -> str:
    """Return the app that imports the endpoint. AWS restricts the characters of the names."""
    return _IMPORTED.format(
        account=running.account,
        region=running.region,
        stack=stack_name(running.name),
        name=running.name,
        config=running.config["EndpointConfigName"],
    )


def stack_name(endpoint_name: str) -> str:
    """Return a name for the stack of an endpoint."""
    name = re.sub(r"[^A-Za-z0-9-]", "-", endpoint_name)
    return name if name[0].isalpha() else f"endpoint-{name}"


def app_text(code: StackCode) -> str:
    """Return app.py with the statements of the stack."""
    endpoint_name = code.new_name(code.running.name)
    environment = call("cdk.Environment", account="ACCOUNT", region="REGION")
    name = literal(stack_name(endpoint_name))
    modules = [
        f"from aws_cdk import {MODULES[module]} as {module}\n"
        for module in code.imports() & MODULES.keys()
    ]
    return APP.format(
        modules="".join(sorted(modules)),
        names=_import_of(sorted(imported for imported in code.imports() if imported[0].isupper())),
        account=code.running.account,
        region=code.running.region,
        endpoint_name=assignment("ENDPOINT_NAME", literal(endpoint_name)),
        stack=assignment(
            "", call("super().__init__", "scope", "id", stack_name=name, env=environment), _INDENT
        ),
        statements=code.text(_INDENT),
    )


def _import_of(names: list[str]) -> str:
    line = f"from constructs_triton import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(["from constructs_triton import (", *(f"    {name}," for name in names), ")"])
