"""What happens in AWS between the deployments of OLD and NEW: events that a user names as
``KIND=SUBJECT``.

Each kind of ``KINDS`` is a method of ``Meanwhile``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.errors import InvalidValueError

from ..behaviour import Behaviour
from ..providers import is_custom
from ..steps import Step
from .event_kinds import counted, parsed
from .recording import Moment, State
from .trial import Trial
from .versions import Request, construct_paths

_INSTANCE_TYPE = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9]+\b")
_KEPT = ("Metadata", "ServerSideEncryption", "SSEKMSKeyId")
_MOST_LISTED = 20


@dataclass
class Meanwhile:
    """The account in which OLD is deployed, and in which the events of a request happen.

    ``before`` is what was seen before the events, ``last`` what was seen after them; ``None`` if no
    endpoint serves. ``moments`` has what was seen after each. The public methods are the kinds of
    events; each returns what happened.
    """

    trial: Trial
    request: Request
    before: Moment | None = None
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        present = self.trial.look()
        self.before = present if present.serving or present.data else None
        self._paths = construct_paths(self.request.old, self.request.new)
        for event in self.request.meanwhile:
            self.moments.append(self.trial.look(Step("meanwhile", self._happen(event))))

    def refusal(self, event: str) -> InvalidValueError | None:
        """Let an event happen; return the error if its subject does not exist here."""
        try:
            self._happen(event)
        except InvalidValueError as error:
            return error
        return None

    def _happen(self, event: str) -> str:
        kind, subject = parsed(event)
        happened: str = getattr(self, kind.replace("-", "_"))(subject)
        return happened

    @property
    def last(self) -> Moment | None:
        return self.moments[-1] if self.before and self.moments else self.before

    def log_group(self, name: str) -> str:
        logs = self.trial.account.client("logs")
        found = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        if name not in [each["logGroupName"] for each in found]:
            logs.create_log_group(logGroupName=name)
        return f"log group {name} exists"

    def fleet(self, subject: str) -> str:
        return "endpoint {} runs {} instances".format(*counted(subject))

    def host_replaced(self, subject: str) -> str:
        """What an instance could not read before matters now."""
        endpoint = f"endpoint {_found('endpoint', subject, self._deployed(*ENDPOINT_TYPES))[0]}"
        if self.before is not None:
            known = [
                each
                for each in self.before.readings
                if each.endpoint != endpoint or not each.refusal
            ]
            self.before = replace(self.before, readings=tuple(known))
        return f"a host of {endpoint} is replaced"

    def days(self, subject: str) -> str:
        """Let days pass, after which lifecycle rules have deleted objects."""
        days = counted(subject)[1]
        self._behave(days_passed=self._now.days_passed + days)
        for bucket, prefix in self._expired(self._now.days_passed):
            for place, key in list(self._objects()):
                if place == bucket and key.startswith(prefix):
                    self.trial.account.client("s3").delete_object(Bucket=bucket, Key=key)
        return "a day passes" if days == 1 else f"{days} days pass"

    def damaged(self, subject: str) -> str:
        """Damage the content of objects."""
        s3 = self.trial.account.client("s3")
        objects = {"/".join(each): each for each in self._objects()}
        found = _found("object", subject.removeprefix("s3://"), dict.fromkeys(objects, ()))
        for bucket, key in map(objects.__getitem__, found):
            present = s3.head_object(Bucket=bucket, Key=key)
            kept = {name: present[name] for name in _KEPT if name in present}
            s3.put_object(Bucket=bucket, Key=key, Body=b"damaged", **kept)
        return f"s3://{', s3://'.join(found)} is damaged"

    def function_fails(self, subject: str) -> str:
        """Let the function of a custom resource answer FAILED in the update."""
        declared = {
            name: (self._paths.get(name, ""),)
            for stack in (*self.request.old.stacks, *self.request.new.stacks)
            for name, resource in stack.template.resources.items()
            if is_custom(resource.type)
        }
        name = _found("custom resource", subject, declared)[0]
        self._behave(failing={**self._now.failing, name: "answers FAILED"})
        return f"the function of {name} answers FAILED in the update"

    def no_capacity(self, subject: str) -> str:
        kind = self._instance_type(subject)
        self._behave(without_capacity={*self._now.without_capacity, kind})
        return f"SageMaker has no capacity for {kind}"

    def quota(self, subject: str) -> str:
        name, count = counted(subject)
        kind = self._instance_type(name)
        self._behave(quotas={**self._now.quotas, kind: count})
        return f'the quota "{kind} for endpoint usage" is {count}'

    def key_disabled(self, subject: str) -> str:
        keys = self._deployed("AWS::KMS::Key")
        (key, *_) = _found("key", subject, keys)
        self.trial.account.client("kms").disable_key(KeyId=key)
        return f"key {keys[key][0]} is disabled"

    def image_deleted(self, subject: str) -> str:
        needed = [each.object for each in (self.before.readings if self.before else ())]
        images = [each for each in needed if not each.startswith("s3://")]
        found = _found("image", subject, dict.fromkeys(images, ()))
        self._behave(deleted_images={*self._now.deleted_images, *found})
        return f"image {', '.join(found)} is deleted"

    @property
    def _now(self) -> Behaviour:
        return self.trial.account.behaviour

    def _behave(self, **changes: Any) -> None:
        self.trial.account.behaviour = replace(self._now, **changes)

    def _deployed(self, *types: str) -> dict[str, tuple[str, ...]]:
        """The name or ID of each resource of these types, with its logical ID and its path."""
        return {
            identifier.rpartition("/")[2]: (name, self._paths.get(name, ""))
            for (_, name), (kind, identifier) in State.of(self.trial.account).resources.items()
            if kind in types
        }

    def _objects(self) -> Iterator[tuple[str, str]]:
        """Bucket and key of each object."""
        s3 = self.trial.account.client("s3")
        for bucket in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                yield from ((bucket, each["Key"]) for each in page.get("Contents", ()))

    def _expired(self, days: int) -> Iterator[tuple[str, str]]:
        """Bucket and prefix of what lifecycle rules delete.

        S3 does so at the midnight after the last day.
        """
        for stack in self.trial.account.stacks.all:
            for deployed in stack.resources.values():
                for rule in deployed.properties.get("LifecycleConfiguration", {}).get("Rules", ()):
                    if (
                        rule["Status"] == "Enabled"
                        and int(rule.get("ExpirationInDays", days)) < days
                    ):
                        yield deployed.physical.id, rule.get("Prefix", "")

    def _instance_type(self, name: str) -> str:
        stacks = (*self.request.old.stacks, *self.request.new.stacks)
        types = _INSTANCE_TYPE.findall(json.dumps([each.template.body for each in stacks]))
        return _found("instance type", name, dict.fromkeys(types, ()))[0]


def _found(what: str, subject: str, known: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The names that the subject is, ends, or names in another way;
    an image may have a tag after it.

    ``known`` has the other names of each name.
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
