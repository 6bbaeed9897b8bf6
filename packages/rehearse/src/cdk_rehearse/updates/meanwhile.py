"""What happens in AWS between the deployments of OLD and NEW: events that a user names as ``KIND=SUBJECT``.

The command's help lists the kinds, so this module imports nothing of the simulated account.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.errors import InvalidValueError

from ..steps import Step
from .versions import Request, construct_paths

if TYPE_CHECKING:
    from .recording import Moment
    from .trial import Outcome, Trial

_INSTANCE_TYPE = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9]+\b")
_KEPT = ("Metadata", "ServerSideEncryption", "SSEKMSKeyId")
_MOST_LISTED = 20


@dataclass
class Meanwhile:
    """The account in which OLD is deployed, and in which the events of a request happen.

    ``before`` is what was seen before the events, ``last`` what was seen after them; ``None`` if no endpoint
    serves. ``moments`` has what was seen after each. The public methods are the kinds of events; each returns
    what happened.
    """

    trial: Trial
    request: Request
    before: Moment | None = None
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        present = self.trial.look()
        self.before = present if present.serving else None
        self._paths = construct_paths(self.request.old, self.request.new)
        self._behaviour = self.trial.account.behaviour
        for kind, subject in map(parsed, self.request.meanwhile):
            step = Step("meanwhile", KINDS[kind].happen(self, subject))
            self.trial.account.behaviour = self._behaviour
            self.moments.append(self.trial.look(step))

    @property
    def last(self) -> Moment | None:
        return self.moments[-1] if self.before and self.moments else self.before

    def then(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the update with the moments of the events before it."""
        return replace(outcome, moments=(*self.moments, *outcome.moments))

    def log_group(self, name: str) -> str:
        logs = self.trial.account.client("logs")
        found = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        if name not in [each["logGroupName"] for each in found]:
            logs.create_log_group(logGroupName=name)
        return f"log group {name} exists"

    def fleet(self, subject: str) -> str:
        return "endpoint {} runs {} instances".format(*_counted(subject))

    def host_replaced(self, subject: str) -> str:
        """What an instance could not read before matters now."""
        endpoint = f"endpoint {_found('endpoint', subject, self._deployed(*ENDPOINT_TYPES))[0]}"
        for each in self.before.readings if self.before else ():
            if each.endpoint == endpoint and self.before:
                others = [other for other in self.before.readings if other != each]
                self.before = replace(self.before, readings=(*others, replace(each, refusal="")))
        return f"a host of {endpoint} is replaced"

    def days(self, subject: str) -> str:
        days = _counted(subject)[1]
        self._behaviour = replace(self._behaviour, days_passed=self._behaviour.days_passed + days)
        for bucket, prefix in self._expired(days):
            for place, key in list(self._objects()):
                if place == bucket and key.startswith(prefix):
                    self.trial.account.client("s3").delete_object(Bucket=bucket, Key=key)
        return f"{days} days pass"

    def damaged(self, subject: str) -> str:
        s3, objects = self.trial.account.client("s3"), {"/".join(each): each for each in self._objects()}
        found = _found("object", subject.removeprefix("s3://"), dict.fromkeys(objects, ()))
        for bucket, key in map(objects.__getitem__, found):
            present = s3.head_object(Bucket=bucket, Key=key)
            kept = {name: present[name] for name in _KEPT if name in present}
            s3.put_object(Bucket=bucket, Key=key, Body=b"damaged", **kept)
        return f"s3://{', s3://'.join(found)} is damaged"

    def function_fails(self, subject: str) -> str:
        declared = {
            name: (self._paths.get(name, ""),)
            for stack in (*self.request.old.stacks, *self.request.new.stacks)
            for name, resource in stack.template.resources.items()
            if "ServiceToken" in resource.properties
        }
        name = _found("custom resource", subject, declared)[0]
        failing = {**self._behaviour.failing, name: "answers FAILED"}
        self._behaviour = replace(self._behaviour, failing=failing)
        return f"the function of {name} answers FAILED in the update"

    def no_capacity(self, subject: str) -> str:
        kind = self._instance_type(subject)
        self._behaviour = replace(self._behaviour, without_capacity={*self._behaviour.without_capacity, kind})
        return f"SageMaker has no capacity for {kind}"

    def quota(self, subject: str) -> str:
        name, count = _counted(subject)
        kind = self._instance_type(name)
        self._behaviour = replace(self._behaviour, quotas={**self._behaviour.quotas, kind: count})
        return f'the quota "{kind} for endpoint usage" is {count}'

    def key_disabled(self, subject: str) -> str:
        keys = self._deployed("AWS::KMS::Key")
        (key, *_) = _found("key", subject, keys)
        self.trial.account.client("kms").disable_key(KeyId=key)
        return f"key {keys[key][0]} is disabled"

    def image_deleted(self, subject: str) -> str:
        images = _found("image", subject, dict.fromkeys(self._images(), ()))
        deleted = {*self._behaviour.deleted_images, *images}
        self._behaviour = replace(self._behaviour, deleted_images=deleted)
        return f"image {', '.join(images)} is deleted"

    def _deployed(self, *types: str) -> dict[str, tuple[str, ...]]:
        """The name or ID of each resource of these types, with its logical ID and its path."""
        return {
            deployed.physical.id.rpartition("/")[2]: (name, self._paths.get(name, ""))
            for stack in self.trial.account.stacks.all
            for name, deployed in stack.resources.items()
            if deployed.request.type in types
        }

    def _objects(self) -> Iterator[tuple[str, str]]:
        """Bucket and key of each object."""
        s3 = self.trial.account.client("s3")
        for bucket in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                yield from ((bucket, each["Key"]) for each in page.get("Contents", ()))

    def _expired(self, days: int) -> Iterator[tuple[str, str]]:
        """Bucket and prefix of what lifecycle rules delete. S3 does so at the midnight after the last day."""
        for stack in self.trial.account.stacks.all:
            for deployed in stack.resources.values():
                for rule in deployed.properties.get("LifecycleConfiguration", {}).get("Rules", ()):
                    if rule["Status"] == "Enabled" and int(rule.get("ExpirationInDays", days)) < days:
                        yield deployed.physical.id, rule.get("Prefix", "")

    def _instance_type(self, name: str) -> str:
        stacks = (*self.request.old.stacks, *self.request.new.stacks)
        types = _INSTANCE_TYPE.findall(json.dumps([each.template.body for each in stacks]))
        return _found("instance type", name, dict.fromkeys(types, ()))[0]

    def _images(self) -> Iterator[str]:
        """The images of all models."""
        sagemaker = self.trial.account.client("sagemaker")
        for page in sagemaker.get_paginator("list_models").paginate():
            for each in page["Models"]:
                model = sagemaker.describe_model(ModelName=each["ModelName"])
                for container in (model.get("PrimaryContainer") or {}, *model.get("Containers", ())):
                    yield from [container["Image"]] if "Image" in container else []


class Kind(NamedTuple):
    """How the subject of an event is written, one line of help, and what makes it happen."""

    subject: str
    help: str
    happen: Callable[[Meanwhile, str], str]


KINDS = {
    "log-group": Kind("NAME", "this log group exists", Meanwhile.log_group),
    "fleet": Kind("ENDPOINT:COUNT", "each variant of the endpoint has this many instances", Meanwhile.fleet),
    "host-replaced": Kind("ENDPOINT", "SageMaker replaces a host of the endpoint", Meanwhile.host_replaced),
    "days": Kind("COUNT", "days pass for lifecycle rules and retained models", Meanwhile.days),
    "damaged": Kind("KEY", "an object in S3 is damaged (its URL, or the end of it)", Meanwhile.damaged),
    "function-fails": Kind("RESOURCE", "a custom resource answers FAILED", Meanwhile.function_fails),
    "no-capacity": Kind("INSTANCE_TYPE", "no instance of the type can start", Meanwhile.no_capacity),
    "quota": Kind("INSTANCE_TYPE:COUNT", "the quota of the type for all endpoints", Meanwhile.quota),
    "key-disabled": Kind("KEY", "a KMS key is disabled", Meanwhile.key_disabled),
    "image-deleted": Kind(
        "IMAGE", "an image, or a whole repository, is deleted in ECR", Meanwhile.image_deleted
    ),
}
"""The kinds of events by name."""


def parsed(event: str) -> tuple[str, str]:
    """Return kind and subject of an event; raises ``InvalidValueError`` for an unknown kind."""
    kind, _, subject = event.partition("=")
    if kind not in KINDS or not subject:
        forms = ", ".join(f"{name}={each.subject}" for name, each in KINDS.items())
        raise InvalidValueError(f"meanwhile: must be one of {forms}, got {event!r}")
    return kind, subject


def fleets_of(request: Request) -> dict[str, int]:
    """Return the instances of endpoints before the update, those of events included."""
    events = dict(map(parsed, request.meanwhile))
    return {**request.fleets, **dict(_counted(each) for kind, each in events.items() if kind == "fleet")}


def _counted(subject: str) -> tuple[str, int]:
    name, _, count = subject.rpartition(":")
    if not (count.isdecimal() and count.isascii()):
        raise InvalidValueError(f"meanwhile: must end with a whole number, got {subject!r}")
    return name, int(count)


def _found(what: str, subject: str, known: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The names that the subject is, ends, or names in another way; an image may have a tag after it."""
    pattern = re.compile(rf"(?:^|/){re.escape(subject)}(?:[:@]|$)")
    found = [name for name, others in known.items() if pattern.search(name) or subject in others]
    if not found:
        listed = [f"{name} ({others[0]})" if others else name for name, others in known.items()]
        names = ", ".join(listed[:_MOST_LISTED]) or "none"
        raise InvalidValueError(f"meanwhile: there is no {what} {subject!r}; known are {names}")
    return found
