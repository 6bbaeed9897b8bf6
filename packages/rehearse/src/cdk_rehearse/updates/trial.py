"""One simulated account in which versions are deployed after each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import InvalidValueError

from ..account import SimulatedAccount
from ..behaviour import Behaviour
from ..construct_libraries import construct_libraries
from ..errors import FAILURES
from ..existing import assume_role, assumed_maxima
from ..moto_account.process import repeat_ids
from ..services.service_api import Undecided
from ..stacks.publishing import publish
from ..stacks.stack import Stack
from ..steps import Step
from .recording import Moment, Recorder, State, leftovers
from .report import Leftover
from .versions import StackVersion, Version

_ARCHIVE = re.compile(r"\b[0-9a-f]{64}\.tar\.gz\b")
"""A model. Functions and nested stacks whose assets are absent are not simulated."""


@dataclass(frozen=True)
class Outcome:
    """The result of deploying or deleting all stacks of a version; ``status`` has those that were
    reached.

    ``reason`` is empty after a success. SageMaker may create ``late_log_groups`` again after their
    deletion.
    """

    status: Mapping[str, str]
    reason: str
    moments: tuple[Moment, ...]
    before: State
    after: State
    leftovers: tuple[Leftover, ...]
    late_log_groups: frozenset[str] = frozenset()
    undecided: frozenset[Undecided] = frozenset()
    """What no policy allowed certainly, and did so before the operation or was not needed."""

    @property
    def is_complete(self) -> bool:
        """Whether all stacks have what was asked for."""
        if self.reason:
            return False
        return all(
            status.endswith("_COMPLETE") and "ROLLBACK" not in status
            for status in self.status.values()
        )

    @property
    def last_stack(self) -> str:
        """The name of the last stack that was reached."""
        return list(self.status)[-1]

    @property
    def last_status(self) -> str:
        """The status of the last stack that was reached."""
        return list(self.status.values())[-1] if self.status else ""

    @property
    def restored(self) -> bool:
        """Whether everything is as it was before."""
        return self.before == self.after and not self.leftovers


class Trial:
    """An account with a bootstrapped environment, and what was seen in it."""

    def __init__(self, account: SimulatedAccount, *, reads: bool) -> None:
        self.account = account
        self._bucket = account.bootstrap()
        account.api.assumes_existing = True
        self._recorder = Recorder(account)
        self._recorder.attach()
        self._published: set[Path] = set()
        self._filled: set[str] = set()
        account.execution_roles.knows_models = reads

    def deploy(
        self, version: Version, former: Version, behaviour: Behaviour | None = None
    ) -> Outcome:
        """Deploy a version over a former one, and delete the stacks that it no longer has."""
        self.account.api.filled_outside = frozenset(self._buckets(filled=False)) - self._filled
        outcome = self._deploy(version, former, behaviour)
        self._filled |= self._buckets(filled=True)
        return outcome

    def set_up(self, version: Version) -> Outcome:
        """Deploy the version that is deployed in AWS, where others may have filled its buckets."""
        self.account.api.filled_outside = None
        outcome = self._deploy(version, Version(()), None)
        self._filled |= self._buckets(filled=True)
        return outcome

    def _buckets(self, *, filled: bool) -> set[str]:
        """The names of the buckets with objects, or of those without."""
        found = self.account.api.backend("s3").buckets
        return {name for name, bucket in found.items() if bool(bucket.keys) is filled}

    def _deploy(self, version: Version, former: Version, behaviour: Behaviour | None) -> Outcome:
        """Update the stacks of a version, then delete the others of the former one."""
        kept = {stack.name for stack in version.stacks}
        removed = [stack.name for stack in reversed(former.stacks) if stack.name not in kept]
        self.account.behaviour = behaviour or self.account.behaviour

        # Stacks of other environments are updated after these, and deleted before them.
        api = self.account.api
        api.passed = version.passed
        api.imported = former.imported if version.stacks else {}
        for place, value in former.passed.items():
            _, _, name = place
            is_parameter = name.startswith("/")  # which no deployment changes
            if is_parameter:
                api.passed.setdefault(place, value)

        outcome = self._run([*version.stacks, *removed])
        for stack in self.account.stacks.all:
            for name, value in stack.output_values.items():
                api.passed.setdefault((api.account, api.region, f"{stack.name}.{name}"), value)
        return outcome

    def _run(self, operations: list[StackVersion | str]) -> Outcome:
        """Carry out operations until one fails, and return what was seen."""
        account = self.account
        account.encrypted_data.remember()
        before = State.of(account)
        moments_before = len(self._recorder.moments)
        undecided_before = set(account.api.undecided)

        status: dict[str, str] = {}
        reason = ""
        remaining: list[Leftover] = []
        for operation in operations:
            name = operation if isinstance(operation, str) else operation.name
            stack = self._stack(name)
            events_before = {known.id: len(known.events) for known in account.stacks.all}
            self._recorder.begin(name)

            reason = self._attempt(operation, stack)
            status[name] = stack.status
            for changed in account.stacks.all:  # nested stacks too
                remaining += leftovers(changed, events_before.get(changed.id, 0), name)
            if reason or "ROLLBACK" in stack.status or "FAILED" in stack.status:
                break

        return Outcome(
            status=status,
            reason=reason,
            moments=tuple(self._recorder.moments[moments_before:]),
            before=before,
            after=State.of(account),
            leftovers=tuple(remaining),
            late_log_groups=frozenset(account.fleets.late_log_groups),
            undecided=frozenset(account.api.undecided - undecided_before),
        )

    def _attempt(self, operation: StackVersion | str, stack: Stack) -> str:
        """Carry out an operation on a stack; return why it failed, or an empty string."""
        try:
            self._carry_out(operation)
        except FAILURES as error:
            return str(error) or stack.reason
        return stack.reason

    @property
    def watch(self) -> Callable[[str], None]:
        """Called with the place of a resource, ``STACK/ID``, before and after its change."""
        return self._recorder.watch

    @watch.setter
    def watch(self, watch: Callable[[str], None]) -> None:
        self._recorder.watch = watch

    def _stack(self, name: str) -> Stack:
        """The stack; one whose creation was rolled back is deleted first, as the CDK does."""
        stack = self.account.stacks.find(name)
        if stack is not None and stack.status == "ROLLBACK_COMPLETE":
            self.account.deployer.delete(stack)
            stack = None
        return stack or self.account.stacks.add(name)

    def _carry_out(self, operation: StackVersion | str) -> None:
        """Deploy a stack, or delete the one of this name, and wait for its functions."""
        account = self.account
        if isinstance(operation, str):
            account.deployer.delete(account.stack(operation))
        else:
            self._publish(operation)
            stack = account.stack(operation.name)
            account.deployer.deploy(stack, operation.template, operation.parameters)
        account.functions.wait()

    def _publish(self, version: StackVersion) -> None:
        """Publish the assets of a stack, or empty archives if only its template is known."""
        if version.directory is None:
            for name in set(_ARCHIVE.findall(str(version.template.body))):
                self.account.api.call("s3", "PutObject", Bucket=self._bucket, Key=name, Body=b"")
            return
        if version.directory in self._published:
            return
        if publish(Assembly(version.directory), self.account.api):
            self._published.add(version.directory)

    def look(self, moment: Step = Step("end", "now")) -> Moment:  # noqa: B008 - it cannot change
        """Return the account as it is now, or at this moment."""
        self._recorder.inspect(moment)
        return self._recorder.moments[-1]

    def set_fleets(self, fleets: Mapping[str, int]) -> None:
        """Set the instances of endpoints, by default those with scaling to their maximum.

        Inference components with scaling get their highest number of copies, or as many as fit.
        ``fleets`` has names or logical IDs of endpoints.
        """
        logical_ids = self.endpoints()
        expect_known(fleets, logical_ids)
        for name, endpoint in self.account.api.backend("sagemaker").endpoints.items():
            wanted = fleets.get(name, fleets.get(logical_ids.get(name, name)))
            for variant in endpoint.production_variants:
                maximum = self._maximum(f"endpoint/{name}/variant/{variant['VariantName']}")
                count = maximum if wanted is None else wanted
                # A serverless variant has no instances.
                if count is not None and "DesiredInstanceCount" in variant:
                    variant["DesiredInstanceCount"] = count
                    variant["CurrentInstanceCount"] = count

        components = self.account.components
        for name in components.all:
            maximum = self._maximum(f"inference-component/{name}")
            components.scale_out(name, maximum or 0)

    def endpoints(self) -> dict[str, str]:
        """The logical ID of each endpoint by its name,
        which a template may leave to CloudFormation.
        """
        existing = self.account.api.backend("sagemaker").endpoints
        found = {}
        for place, resource in State.of(self.account).resources.items():
            _, logical_id = place
            resource_type, arn = resource
            if resource_type in ENDPOINT_TYPES:
                name = arn.rpartition("/")[2]
                # The ARN has the name in lower case.
                endpoint = existing.get(name)
                found[name if endpoint is None else endpoint.endpoint_name] = logical_id
        return found

    def _maximum(self, resource_id: str) -> int | None:
        """Return the maximum of a variant or a component; ``None`` if nothing scales it."""
        scaling = self.account.client("application-autoscaling")
        described = scaling.describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[resource_id]
        )
        registered = [target["MaxCapacity"] for target in described["ScalableTargets"]]
        assumed = assumed_maxima(self.account.api, resource_id)
        return max([*registered, *assumed], default=None)


def expect_known(fleets: Iterable[str], endpoints: Mapping[str, str]) -> None:
    """Raise ``InvalidValueError`` for a fleet that is neither a name nor a
    logical ID of an endpoint.
    """
    known = ", ".join(f"{name} ({logical_id})" for name, logical_id in endpoints.items())
    fix = f"pass the name or logical ID of {known}" if known else "it has none; remove this"
    for name in fleets:
        if name not in endpoints and name not in endpoints.values():
            raise InvalidValueError(f"fleet {name!r}: OLD has no such endpoint; {fix}")


@contextmanager
def opened(versions: list[Version], behaviour: Behaviour) -> Iterator[Trial]:
    """Open an account for these versions, whose stacks have the same environment."""
    stacks = [stack for version in versions for stack in version.stacks]
    repeat_ids()
    with SimulatedAccount(stacks[0].account, stacks[0].region) as simulated:
        trial = Trial(simulated, reads=all(version.has_assets for version in versions))
        simulated.behaviour = behaviour
        _assume_adopted(stacks, simulated)
        yield trial


def _assume_adopted(stacks: list[StackVersion], account: SimulatedAccount) -> None:
    """Create the existing resources that stacks take over with a construct library."""
    with_nested: list[SynthesizedStack] = []
    for stack in stacks:
        with_nested += stack.synthesized()
    for library in construct_libraries():
        for synthesized in with_nested:
            library.assume_adopted(synthesized, account.api, partial(assume_role, account.api))
