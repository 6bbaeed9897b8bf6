"""What happens in AWS between the deployments of OLD and NEW: events that a user names as
``KIND=SUBJECT``.

``event_kinds.json`` describes the kinds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.errors import InvalidValueError, TemplateError

from ..behaviour import Behaviour
from ..providers import is_custom
from ..steps import Step
from .event_kinds import counted, parsed
from .progress import Notify, Stepping, ignore
from .recording import Moment, State
from .trial import Trial, opened
from .versions import Request, construct_paths, declared_resources

_INSTANCE_TYPE = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9]+\b")
_KEPT = ("Metadata", "ServerSideEncryption", "SSEKMSKeyId")
"""What an object keeps when its content is damaged."""
_MOST_LISTED = 20


@contextmanager
def prepared(
    request: Request, behaviour: Behaviour, notify: Notify = ignore
) -> Iterator[Meanwhile]:
    """Open an account in which OLD is deployed, the fleets have their sizes and the events have
    happened; raises ``TemplateError`` if OLD cannot be deployed.
    """
    with opened([request.old, request.new], behaviour) as trial:
        trial.watch = lambda place: notify(Stepping("deploying OLD", place))
        outcome = trial.set_up(request.old)
        if not outcome.is_complete:
            raise TemplateError(
                f"OLD cannot be deployed in the simulated account: {outcome.reason}"
            )
        trial.set_fleets(request.fleets)
        yield Meanwhile(trial, request)


@dataclass
class Meanwhile:
    """The account in which OLD is deployed, and in which the events of a request happen.

    ``before`` is what was seen before the events, ``last`` what was seen after them; ``None`` if no
    endpoint serves. ``moments`` has what was seen after each.
    """

    trial: Trial
    request: Request
    before: Moment | None = None
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        present = self.trial.look()
        if present.serving or present.data:
            self.before = present

        self._paths = construct_paths(self.request.old, self.request.new)
        for event in self.request.meanwhile:
            happened = self._happen(event)
            self.moments.append(self.trial.look(Step("meanwhile", happened)))

    @property
    def last(self) -> Moment | None:
        if self.before is None or not self.moments:
            return self.before
        return self.moments[-1]

    def refusal(self, event: str) -> InvalidValueError | None:
        """Let an event happen; return the error if its subject does not exist here."""
        try:
            self._happen(event)
        except InvalidValueError as error:
            return error
        return None

    def _happen(self, event: str) -> str:
        """Let an event happen, and return what happened."""
        kinds: dict[str, Callable[[str], str]] = {
            "log-group": self._create_log_group,
            "fleet": self._describe_fleet,
            "host-replaced": self._replace_host,
            "days": self._let_days_pass,
            "damaged": self._damage_objects,
            "function-fails": self._let_function_fail,
            "no-capacity": self._take_capacity,
            "quota": self._set_quota,
            "key-disabled": self._disable_key,
            "image-deleted": self._delete_image,
        }
        kind, subject = parsed(event)
        return kinds[kind](subject)

    def _create_log_group(self, name: str) -> str:
        logs = self.trial.account.client("logs")
        groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        # The prefix also finds groups with a longer name.
        if name not in [group["logGroupName"] for group in groups]:
            logs.create_log_group(logGroupName=name)
        return f"log group {name} exists"

    def _describe_fleet(self, subject: str) -> str:
        """Change nothing: the fleets of the request have their sizes already."""
        endpoint, count = counted(subject)
        return f"endpoint {endpoint} runs {count} instances"

    def _replace_host(self, subject: str) -> str:
        """Forget what an instance could not read before OLD, since one has to start now."""
        endpoints = self._deployed(*ENDPOINT_TYPES)
        name = _found("endpoint", subject, endpoints)[0]
        endpoint = f"endpoint {name}"
        if self.before is not None:
            known = []
            for reading in self.before.readings:
                if reading.endpoint != endpoint or not reading.refusal:
                    known.append(reading)
            self.before = replace(self.before, readings=tuple(known))
        return f"a host of {endpoint} is replaced"

    def _let_days_pass(self, subject: str) -> str:
        """Let days pass, after which lifecycle rules have deleted objects."""
        _, days = counted(subject)
        days_passed = self._behaviour.days_passed + days
        self._behave(days_passed=days_passed)

        s3 = self.trial.account.client("s3")
        for bucket, prefix in self._expired(days_passed):
            for place, key in list(self._objects()):
                if place == bucket and key.startswith(prefix):
                    s3.delete_object(Bucket=bucket, Key=key)
        return "a day passes" if days == 1 else f"{days} days pass"

    def _expired(self, days: int) -> Iterator[tuple[str, str]]:
        """Bucket and prefix of what lifecycle rules delete.

        S3 does so at the midnight after the last day.
        """
        for stack in self.trial.account.stacks.all:
            for deployed in stack.resources.values():
                lifecycle = deployed.properties.get("LifecycleConfiguration", {})
                for rule in lifecycle.get("Rules", ()):
                    is_enabled = rule["Status"] == "Enabled"
                    if is_enabled and int(rule.get("ExpirationInDays", days)) < days:
                        yield deployed.physical.id, rule.get("Prefix", "")

    def _damage_objects(self, subject: str) -> str:
        """Damage the content of objects, and keep what they have beside it."""
        s3 = self.trial.account.client("s3")
        objects = {f"{bucket}/{key}": (bucket, key) for bucket, key in self._objects()}
        found = _found("object", subject.removeprefix("s3://"), dict.fromkeys(objects, ()))
        for name in found:
            bucket, key = objects[name]
            present = s3.head_object(Bucket=bucket, Key=key)
            kept = {member: present[member] for member in _KEPT if member in present}
            s3.put_object(Bucket=bucket, Key=key, Body=b"damaged", **kept)
        return f"s3://{', s3://'.join(found)} is damaged"

    def _let_function_fail(self, subject: str) -> str:
        """Let the function of a custom resource answer FAILED in the update."""
        declared = {}
        for version in (self.request.old, self.request.new):
            for (_, logical_id), resource in declared_resources(version).items():
                if is_custom(resource.type):
                    declared[logical_id] = (self._paths.get(logical_id, ""),)

        name = _found("custom resource", subject, declared)[0]
        self._behave(failing={**self._behaviour.failing, name: "answers FAILED"})
        return f"the function of {name} answers FAILED in the update"

    def _take_capacity(self, subject: str) -> str:
        instance_type = self._instance_type(subject)
        self._behave(without_capacity={*self._behaviour.without_capacity, instance_type})
        return f"SageMaker has no capacity for {instance_type}"

    def _set_quota(self, subject: str) -> str:
        name, count = counted(subject)
        instance_type = self._instance_type(name)
        self._behave(quotas={**self._behaviour.quotas, instance_type: count})
        return f'the quota "{instance_type} for endpoint usage" is {count}'

    def _disable_key(self, subject: str) -> str:
        keys = self._deployed("AWS::KMS::Key")
        key_id = _found("key", subject, keys)[0]
        self.trial.account.client("kms").disable_key(KeyId=key_id)
        logical_id, _ = keys[key_id]
        return f"key {logical_id} is disabled"

    def _delete_image(self, subject: str) -> str:
        """Delete an image that an endpoint runs; no other one matters to the update."""
        images = []
        for reading in self.before.readings if self.before else ():
            if not reading.object.startswith("s3://"):
                images.append(reading.object)

        found = _found("image", subject, dict.fromkeys(images, ()))
        self._behave(deleted_images={*self._behaviour.deleted_images, *found})
        return f"image {', '.join(found)} is deleted"

    @property
    def _behaviour(self) -> Behaviour:
        return self.trial.account.behaviour

    def _behave(self, **changes: Any) -> None:
        self.trial.account.behaviour = replace(self._behaviour, **changes)

    def _deployed(self, *types: str) -> dict[str, tuple[str, str]]:
        """The name or ID of each resource of these types, with its logical ID and its path."""
        found = {}
        for place, resource in State.of(self.trial.account).resources.items():
            _, logical_id = place
            resource_type, physical_id = resource
            if resource_type in types:
                name = physical_id.rpartition("/")[2]
                found[name] = (logical_id, self._paths.get(logical_id, ""))
        return found

    def _objects(self) -> Iterator[tuple[str, str]]:
        """Bucket and key of each object."""
        s3 = self.trial.account.client("s3")
        for bucket in s3.list_buckets()["Buckets"]:
            name = bucket["Name"]
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
                for described in page.get("Contents", ()):
                    yield name, described["Key"]

    def _instance_type(self, name: str) -> str:
        """Return the instance type of a name; raises ``InvalidValueError`` unless a template has
        it.
        """
        stacks = (*self.request.old.stacks, *self.request.new.stacks)
        templates = json.dumps([stack.template.body for stack in stacks])
        types = _INSTANCE_TYPE.findall(templates)
        return _found("instance type", name, dict.fromkeys(types, ()))[0]


def _found(what: str, subject: str, known: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The names that the subject is, ends, or names in another way;
    an image may have a tag after it.

    ``known`` has the other names of each name. Raises ``InvalidValueError`` if there is none.
    """
    pattern = re.compile(rf"(?:^|/){re.escape(subject)}(?:[:@]|$)")
    found = [name for name, others in known.items() if pattern.search(name) or subject in others]
    if found:
        return found

    fix = "there is none; remove this"
    if known:
        listed = [f"{name} ({others[0]})" if others else name for name, others in known.items()]
        fix = f"pass one of {', '.join(listed[:_MOST_LISTED])}"
    raise InvalidValueError(f"meanwhile: there is no {what} {subject!r}; {fix}")
