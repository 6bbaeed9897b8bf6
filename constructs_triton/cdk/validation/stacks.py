"""The stack of a construct and its environment, each read from the CDK once."""

from __future__ import annotations

from functools import cache, cached_property
from weakref import WeakKeyDictionary

from aws_cdk import Aws, Stack
from constructs import IConstruct


class StackEnvironment:
    """The environment of a stack. None of it changes after the stack has been created."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    @cached_property
    def region(self) -> str:
        """The Region, a token if it is known only at deployment."""
        return self.stack.region

    @cached_property
    def account(self) -> str:
        """The account, a token if it is known only at deployment."""
        return self.stack.account

    @cached_property
    def partition(self) -> str:
        """The partition, a token if it is known only at deployment."""
        return self.stack.partition

    @cached_property
    def path(self) -> str:
        """The path of the stack in the app."""
        return self.stack.node.path


_of_constructs: WeakKeyDictionary[IConstruct, StackEnvironment] = WeakKeyDictionary()
_of_stacks: WeakKeyDictionary[Stack, StackEnvironment] = WeakKeyDictionary()


def environment_of(scope: IConstruct) -> StackEnvironment:
    """Return the environment of a construct's stack."""
    found = _of_constructs.get(scope)
    if found is None:
        stack = Stack.of(scope)
        found = _of_stacks.setdefault(stack, StackEnvironment(stack))
        _of_constructs[scope] = found
    return found


def stack_of(scope: IConstruct) -> Stack:
    """Return the stack of a construct."""
    return environment_of(scope).stack


@cache
def pseudo_parameter(name: str) -> str:
    """Return a pseudo parameter of CloudFormation, such as ``PARTITION`` of the CDK's class ``Aws``."""
    return str(getattr(Aws, name))
