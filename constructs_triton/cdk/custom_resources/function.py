"""What the functions that serve custom resources at deployment have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self, cast

from aws_cdk import Duration, IgnoreMode, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

__all__ = ["DeployFunction", "FunctionDefinition", "newest_python"]


def newest_python() -> lambda_.Runtime:
    """The newest Python that this release of the CDK knows, so that the function ages with the CDK."""
    minors = (re.fullmatch(r"PYTHON_3_(\d+)", name) for name in dir(lambda_.Runtime))
    newest = max(int(match[1]) for match in minors if match)
    return cast(lambda_.Runtime, getattr(lambda_.Runtime, f"PYTHON_3_{newest}"))


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """What a function is made of.

    ``id`` is the construct's id in its stack. ``code_folder`` holds the modules, and ``handler`` is relative
    to its parent.
    """

    id: str
    description: str
    code_folder: Path
    handler: str
    timeout_minutes: int
    memory_mib: int


class DeployFunction(Construct):
    """The function, one a stack; who needs it adds to its role what it may touch."""

    DEFINITION: ClassVar[FunctionDefinition]

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        made_of = self.DEFINITION
        folder = made_of.code_folder.name
        self.log_group = logs.LogGroup(self, "LogGroup", retention=logs.RetentionDays.ONE_MONTH)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Resource",
            description=made_of.description,
            runtime=newest_python(),
            handler=made_of.handler,
            # Only the modules: bytecode and the rest of the package would change the asset's hash.
            code=lambda_.Code.from_asset(
                str(made_of.code_folder.parent),
                exclude=["*", f"!/{folder}", f"!/{folder}/*.py"],
                ignore_mode=IgnoreMode.GIT,
            ),
            timeout=Duration.minutes(made_of.timeout_minutes),
            memory_size=made_of.memory_mib,
            role=self.role,
            log_group=self.log_group,
        )

    @classmethod
    def of(cls, scope: Construct) -> Self:
        """The function of the stack that ``scope`` is in, made when first asked for."""
        stack = Stack.of(scope)
        existing = stack.node.try_find_child(cls.DEFINITION.id)
        return existing if isinstance(existing, cls) else cls(stack, cls.DEFINITION.id)
