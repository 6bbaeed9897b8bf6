"""Each public construct with a key behind everything that can have one, found by its signatures.

A new property, option or method is found by its type. A new construct is built from the values of
``SHARED``, which has one for each required property.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct
from files_app import INSTANCE_TYPE, write_models
from files_states import State

import constructs_triton as library
from constructs_triton.cdk import DeployTimeFunctions
from constructs_triton_core.errors import InvalidValueError

STACK = "Keyed"
KEYED = ("IKey", "IBucket", "ITopic", "IQueue", "IAlarmAction", "IAlarm")
SCHEDULE = scheduler.ScheduleExpression.cron(hour="20", minute="0")
OF_ANOTHER_TEST = ("from_", "grant_", "add_adapter")
"""Methods that create nothing under a key; the Regions and keys of sources have tests of their own,
and so has the key of the asset bucket, which an adapter is given.
"""


def constructs() -> list[type]:
    """The public constructs and the other public classes of which something may be under a key."""
    # Users make an adapter with ``add_adapter``.
    public = [getattr(library, name) for name in library.__all__ if name != "LoraAdapter"]
    classes = [each for each in public if inspect.isclass(each) and issubclass(each, Construct)]
    return [each for each in (*classes, DeployTimeFunctions) if methods(each)]


def methods(owner: type) -> list[str]:
    """The constructor and the methods with a parameter that may be under a key."""
    names = [name for name, _ in inspect.getmembers(owner, callable) if not name.startswith("_")]
    return [
        name
        for name in ("__init__", *names)
        if not name.startswith(OF_ANOTHER_TEST) and keyed(getattr(owner, name))
    ]


def keyed(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function whose type is, or has a property that is, under a key."""
    return {name: hint for name, hint in _hints(function).items() if _kinds(hint)}


@cache
def _hints(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, hint in _evaluated(function).items():
        if typing.get_origin(hint) is typing.Unpack:
            found |= _hints(typing.get_args(hint)[0])
        elif name != "return":
            found[name] = hint
    return found


def _evaluated(function: Any) -> dict[str, Any]:
    """The annotations of a function; some modules import their names only for type checkers."""
    names: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(function, localns=names, include_extras=True)
        except NameError as error:
            modules = [
                each for module, each in sys.modules.items() if module.startswith("constructs")
            ]
            name = error.name or ""
            found = [vars(each)[name] for each in modules if name in vars(each)]
            names[name] = found[0] if found else object  # of a package that is not loaded


def _kinds(hint: Any) -> list[Any]:
    """The types below an annotation that a key may be behind: interfaces and classes of options."""
    if getattr(hint, "__name__", "") in KEYED or _is_option(hint):
        return [hint]
    return [kind for part in typing.get_args(hint) for kind in _kinds(part)]


def _is_option(hint: Any) -> bool:
    is_public = inspect.isclass(hint) and getattr(library, hint.__name__, None) is hint
    return is_public and not issubclass(hint, Construct) and bool(keyed(hint.__init__))


class KeyedStack(cdk.Stack):
    """A construct whose properties ``wanted`` have keys, and so have its methods."""

    def __init__(
        self, scope: Construct, id: str, owner: type, *, wanted: list[str], models: Path
    ) -> None:
        super().__init__(scope, id)
        self.wanted = wanted
        self.models = models
        self._build(owner)

    # Values under a key.

    def value(self, hint: Any, name: str) -> Any:
        """A value of a type, with a key whose id is the name of the property."""
        (kind, *_) = _kinds(hint)
        is_option = _is_option(kind)
        made = self._option(kind, name) if is_option else getattr(self, f"_{kind.__name__}")(name)
        is_list = "Sequence" in str(hint)
        return [made] if is_list else made

    def _option(self, kind: Any, name: str) -> Any:
        found = keyed(kind.__init__)
        if kind is library.Deployment:
            return library.Deployment.all_at_once(alarms=[self._IAlarm(f"{name}Alarm")])
        if kind is library.ComponentDeployment:
            return library.ComponentDeployment.rolling(alarms=[self._IAlarm(f"{name}Alarm")])
        given = {each: self.value(hint, f"{name}-{each}") for each, hint in found.items()}
        return kind(**self._required(kind, given), **given)

    def _IKey(self, name: str) -> kms.Key:  # noqa: N802 - the name of the type
        return kms.Key(self, f"Key-{name}", removal_policy=cdk.RemovalPolicy.DESTROY)

    def _IBucket(self, name: str) -> s3.Bucket:  # noqa: N802
        return s3.Bucket(self, f"Bucket-{name}", encryption_key=self._IKey(name))

    def _ITopic(self, name: str) -> sns.Topic:  # noqa: N802
        return sns.Topic(self, f"Topic-{name}", master_key=self._IKey(name), enforce_ssl=True)

    def _IQueue(self, name: str) -> sqs.Queue:  # noqa: N802
        return sqs.Queue(self, f"Queue-{name}", encryption_master_key=self._IKey(name))

    def _IAlarmAction(self, name: str) -> actions.SnsAction:  # noqa: N802
        return actions.SnsAction(self._ITopic(name))

    def _IAlarm(self, name: str) -> cloudwatch.Alarm:  # noqa: N802
        alarm = cloudwatch.Alarm(
            self,
            f"Alarm-{name}",
            alarm_name=f"alarm-{name}",
            metric=cloudwatch.Metric(namespace="Shop", metric_name="Errors"),
            threshold=1,
            evaluation_periods=1,
        )
        alarm.add_alarm_action(self._IAlarmAction(name))
        return alarm

    # Constructs.

    def _build(self, owner: type) -> None:
        if owner is DeployTimeFunctions:
            self._call(DeployTimeFunctions.of(self), "configure")
            self._make(library.TritonMultiModelEndpoint)
            return
        if owner is library.OffSwitch:
            switch = library.OffSwitch(self, "Night")
            self._make(library.TritonEndpoint, endpoint_name="digits", off_switch=switch)
            self._call(switch, "add_schedule", "Evening", off=SCHEDULE)
            return
        created = self._with_keys(owner)
        if owner is library.TritonModelRepository:
            self._make(library.TritonMultiModelEndpoint, model_repository=created)
        for method in methods(owner):
            if method == "add_rollback_alarms":
                created.add_rollback_alarms(self._IAlarm(method))
            elif method != "__init__":
                self._call(created, method)

    def _with_keys(self, owner: Any) -> Any:
        hints = keyed(owner.__init__)
        return self._make(owner, **{name: self.value(hints[name], name) for name in self.wanted})

    def _make(self, owner: type, **given: Any) -> Any:
        values = self._required(owner, given)
        return owner(self, owner.__name__, **{**values, **given})

    def _required(self, owner: Any, given: dict[str, Any]) -> dict[str, Any]:
        hints = _hints(owner.__init__)
        needed = set(hints) - given.keys()
        if "copy_count" in needed:
            needed -= {"instance_type"}  # the endpoint of a component has it
        if "variants" in given:
            needed -= {"instance_type"}
        if issubclass(owner, Construct):
            needed -= {"variant_name"}
        else:
            needed &= {"variant_name", "instance_type"}
        if owner is not library.ContainerInferenceComponent:
            needed -= {"image"}
        if owner is not library.TritonEnsembleEndpoint:
            needed -= {"ensemble"}
        if hints.get("endpoint") is library.ITritonEndpoint:
            needed -= {"endpoint"}
            given["endpoint"] = self._make(library.TritonEndpoint)
        return {name: SHARED[name](self) for name in SHARED if name in needed}

    def _call(self, created: Any, method: str, *first: str, **others: Any) -> None:
        function = getattr(created, method)
        values = {
            name: self.value(hint, f"{method}-{name}") for name, hint in keyed(function).items()
        }
        function(*first, **values, **others)


def _repository(stack: KeyedStack) -> Any:
    known = stack.node.try_find_child("Models")
    source = library.ModelSource.from_directory(stack.models)
    return known or library.TritonModelRepository(stack, "Models", source=source)


def _host(stack: KeyedStack) -> Any:
    known = stack.node.try_find_child("Host")
    return known or library.TritonComponentEndpoint(
        stack,
        "Host",
        instance_type=INSTANCE_TYPE,
        min_instance_count=1,
        max_instance_count=2,
    )


SHARED: dict[str, Callable[[KeyedStack], Any]] = {
    "instance_type": lambda _: INSTANCE_TYPE,
    "min_instance_count": lambda _: 1,
    "max_instance_count": lambda _: 2,
    "number_of_accelerator_devices": lambda _: 1,
    "min_memory": lambda _: cdk.Size.gibibytes(1),
    "source": lambda stack: library.ModelSource.from_directory(stack.models),
    "model_repository": _repository,
    "model": lambda _: "adder",
    "ensemble": lambda _: "twice",
    "variant_name": lambda _: "other",
    "image": lambda _: library.ServingImage.from_registry(
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/vllm:1", cuda_version="12.8"
    ),
    "component": lambda stack: stack._make(library.TritonInferenceComponent),
    "endpoint": _host,
}


def synthesize(directory: Path, owner: type) -> Iterator[Path]:
    """Write an assembly for each group of properties that a construct accepts together.

    A construct refuses some properties beside others. Those are left for the next group; one that
    is refused alone is refused for good.
    """
    models = write_models(directory / "models", State(label=1))
    waiting = [*keyed(owner.__init__)] if issubclass(owner, Construct) else []
    for number in itertools.count():
        wanted = waiting.copy()
        while True:
            folder = directory / f"{number}-{len(wanted)}"
            app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
            try:
                KeyedStack(app, STACK, owner, wanted=wanted, models=models)
                break
            except InvalidValueError as error:
                wanted.remove(_refused(wanted, error))
        app.synth()
        yield folder
        waiting = [name for name in waiting if name not in wanted]
        if not wanted or not waiting:
            return


def _refused(wanted: list[str], error: InvalidValueError) -> str:
    """The property that an error is about; the error itself if it is about none of them."""
    for name in wanted:
        if re.match(rf"(variant \"\w+\" )?{name}\b", str(error)):
            return name
    raise error
