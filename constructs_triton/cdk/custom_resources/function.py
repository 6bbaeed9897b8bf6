"""The AWS Lambda functions that handle custom resources during a deployment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Self, cast

from aws_cdk import Duration, IgnoreMode, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_triton.custom_resource_handlers import CODE_DIRECTORY, CODE_FOLDER

__all__ = ["DeployFunction", "FunctionDefinition", "newest_python"]


def newest_python() -> lambda_.Runtime:
    """Return the newest Python runtime of the CDK in use, so upgrading the CDK upgrades the function."""
    minors = (re.fullmatch(r"PYTHON_3_(\d+)", name) for name in dir(lambda_.Runtime))
    newest = max(int(match[1]) for match in minors if match)
    return cast(lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_3_{newest}"))


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """What a function consists of.

    ``id`` is the construct's id in its stack. ``folder`` is the name of the function's folder in
    ``constructs_triton.custom_resource_handlers``.
    """

    id: str
    description: str
    folder: str
    timeout_seconds: int
    memory_mib: int


class DeployFunction(Construct):
    """A Lambda function, at most one in a stack. Each construct that uses it adds permissions to its role."""

    DEFINITION: ClassVar[FunctionDefinition]

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        definition = self.DEFINITION
        self.log_group = logs.LogGroup(self, "LogGroup", retention=logs.RetentionDays.ONE_MONTH)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Resource",
            description=definition.description,
            runtime=newest_python(),
            handler=f"{CODE_FOLDER}.{definition.folder}.handler.handler",
            code=_code(definition.folder),
            timeout=Duration.seconds(definition.timeout_seconds),
            memory_size=definition.memory_mib,
            role=self.role,
            log_group=self.log_group,
        )

    @classmethod
    def of(cls, scope: Construct) -> Self:
        """Return the function of the stack that ``scope`` is in; create it if there is none."""
        stack = Stack.of(scope)
        existing = stack.node.try_find_child(cls.DEFINITION.id)
        return existing if isinstance(existing, cls) else cls(stack, cls.DEFINITION.id)


def _code(folder: str) -> lambda_.AssetCode:
    """The shared modules and those of the function's folder.

    Bytecode and the rest of the package are left out: they would change the asset's hash.
    """
    shipped = (CODE_FOLDER, f"{CODE_FOLDER}/{folder}")
    included = [f"!/{pattern}" for each in shipped for pattern in (each, f"{each}/*.py")]
    return lambda_.Code.from_asset(str(CODE_DIRECTORY), exclude=["*", *included], ignore_mode=IgnoreMode.GIT)
