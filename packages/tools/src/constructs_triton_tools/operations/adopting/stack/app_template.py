"""The text of app.py around the statements of the stack, and the names that it uses."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Mapping

#: Modules of aws_cdk by the names that the app gives them.
MODULES: Mapping[str, str] = {
    "appscaling": "aws_applicationautoscaling",
    "cloudwatch": "aws_cloudwatch",
    "ec2": "aws_ec2",
    "ecr": "aws_ecr",
    "kms": "aws_kms",
    "s3": "aws_s3",
    "sns": "aws_sns",
}

APP = '''\
"""An endpoint that was created by hand, as an app; ADOPT.md describes the switch."""

import json
from pathlib import Path

import aws_cdk as cdk
{modules}from constructs import Construct

{names}

PROJECT = Path(__file__).parent
ACCOUNT, REGION = "{account}", "{region}"
{endpoint_name}


class EndpointStack(cdk.Stack):
    """The endpoint with the names and numbers that it runs with today."""

    def __init__(self, scope: Construct, id: str) -> None:
{stack}
{statements}


def build_app() -> cdk.App:
    """Return the app with the context of cdk.json, so that tests see what `cdk deploy` deploys."""
    app = cdk.App(context=json.loads((PROJECT / "cdk.json").read_text())["context"])
    EndpointStack(app, "Endpoint")
    return app


if __name__ == "__main__":
    build_app().synth()
'''


def _names_of(text: str) -> set[str]:
    """Return the names that a program uses or defines, without those of members."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name():
                names.add(node.id)
            case ast.arg():
                names.add(node.arg)
            case ast.FunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.alias():
                names.add(node.asname or node.name)
    return names


_EMPTY = APP.format(
    modules="",
    names="",
    account="",
    region="",
    endpoint_name="ENDPOINT_NAME = 0",
    stack="        pass",
    statements="",
)
#: Names that no statement may give to a value.
RESERVED_NAMES = frozenset(
    [*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *MODULES, *_names_of(_EMPTY)]
)
#: Logical ids of what the app has beside parameters: the endpoint that is imported, its output, and
#: what the CDK's synthesizer adds.
RESERVED_IDS = frozenset(["BootstrapVersion", "CheckBootstrapVersion", "Endpoint", "EndpointName"])
