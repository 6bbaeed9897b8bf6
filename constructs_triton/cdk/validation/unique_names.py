"""Names that SageMaker compares without regard to case."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from aws_cdk import PhysicalName
from constructs import Construct, IConstruct

from constructs_triton.cdk.validation.property_types import shown
from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.limit_checks import check_string
from constructs_triton_core.tokens import is_token

# Of each app: the construct with a name, by the environment, the property and the name in lower
# case.
_Key = tuple[str, str, str]
_named: WeakKeyDictionary[IConstruct, dict[_Key, Construct]] = WeakKeyDictionary()


def check_id(scope: Construct, id: str) -> None:
    """Check that the scope is a construct and the id is free.

    The CDK's own error is a trace of JavaScript without advice.
    """
    if not hasattr(scope, "node"):
        fix = "write the scope first, then the id" if isinstance(scope, str) else "write self"
        raise InvalidValueError(f"scope: must be a construct, got {shown(scope)}; {fix}")
    check_string("id", id)
    if scope.node.try_find_child(id) is not None:
        raise InvalidValueError(
            f'{scope.node.path}: already has a construct "{id}"; choose another id'
        )


def check_unique_name(scope: Construct, id: str, name_property: str, name: str | None) -> None:
    """Check that no other construct of the app has the name in the same account and Region, and
    that it is no marker of the CDK, which only the CDK's own constructs understand.

    Source: SageMaker API reference, CreateEndpoint: names are unique in an account and Region, and
    not case-sensitive. Stacks without an account and Region may be deployed to different ones, so
    names are compared within such a stack only.
    """
    check_id(scope, id)
    if name is None:
        return
    if is_token(name):
        _refuse_marker(name_property, name)
        return
    node = scope.node
    other = _named.get(node.root, {}).get(_key(scope, name_property, name))
    path = f"{node.path}/{id}"
    if other is not None and other.node.path != path and _is_in_tree(other):
        raise InvalidValueError(
            f'{path}: {name_property} must be unique regardless of case, got "{name}", and '
            f"{other.node.path} has the same name; change one of them"
        )


def _refuse_marker(name_property: str, name: str) -> None:
    if name == PhysicalName.GENERATE_IF_NEEDED:
        raise InvalidValueError(
            f"{name_property}: must be a name, got PhysicalName.GENERATE_IF_NEEDED; write a name "
            "of your own, or leave it out if only stacks of the same account and Region refer to it"
        )


def register_name(construct: Construct, name_property: str, name: str | None) -> None:
    """Note the name of a construct that has been created."""
    if name is not None and not is_token(name):
        names = _named.setdefault(construct.node.root, {})
        names[_key(construct, name_property, name)] = construct


def _key(scope: Construct, name_property: str, name: str) -> _Key:
    here = environment_of(scope)
    is_known = not is_token(here.account) and not is_token(here.region)
    place = f"aws://{here.account}/{here.region}" if is_known else stack_of(scope).node.path
    return place, name_property, name.lower()


def _is_in_tree(construct: Construct) -> bool:
    """Whether a construct was not removed with ``try_remove_child``."""
    parent = construct.node.scope
    return parent is not None and parent.node.try_find_child(construct.node.id) is not None
