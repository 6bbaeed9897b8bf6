"""What an endpoint gives to its components, and what it knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from constructs_triton.cdk.endpoint.network import NetworkIds
from constructs_triton.cdk.inference_component.compute_requirements import memory_mib_of
from constructs_triton.cdk.inference_component.host_instances import (
    ComponentCopies,
    HostInstances,
    Shortage,
)
from constructs_triton.cdk.inference_component.shared_role import SharedRole
from constructs_triton.cdk.monitoring.interfaces import IInferenceComponent
from constructs_triton.cdk.options.component_deployment import ComponentDeployment, batch_size
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.inference_ami import (
    FOR_THE_IMAGE,
    cuda_mismatch,
    given_ami_version,
    is_same_cuda,
    newest_ami,
)
from constructs_triton.cdk.options.instance_pool import ami_findings
from constructs_triton.cdk.options.serving_image import ServingImage
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.inference_ami import InferenceAmi, default_inference_ami


@dataclass(frozen=True, slots=True)
class PlacedComponent:
    """A component that was created on the endpoint.

    ``initial`` has the copies of the first deployment. ``deployment`` decides how many copies an
    update adds. ``sequence_models`` keep state between requests.
    """

    initial: ComponentCopies
    deployment: ComponentDeployment
    construct: IInferenceComponent
    sequence_models: tuple[str, ...] = ()

    @property
    def at_maximum(self) -> ComponentCopies:
        """The component with the copies that scaling may reach."""
        scaling = self.construct.scalable_copy_count
        if scaling is None:
            return self.initial
        return replace(self.initial, copies=scaling.max_capacity)

    def during_update(self, before: ComponentCopies) -> ComponentCopies:
        """The copies while an update has started the first new ones beside them."""
        new_copies = batch_size(self.deployment, before.copies)
        return replace(before, copies=before.copies + new_copies)


@dataclass(kw_only=True, slots=True)
class ComponentHost:
    """The instances, the role and the network that an endpoint gives to its components.

    ``path`` is the endpoint's path in messages. ``identity`` is the name of the endpoint if it was
    set: with another one, CloudFormation replaces the endpoint. ``image`` is that of components
    that do not set their own. ``known_type`` and ``known_role`` are ``None`` if an imported
    endpoint was given none.
    """

    path: str
    variant_name: str
    identity: str | None
    known_type: InstanceType | None
    known_role: SharedRole | None
    network_ids: NetworkIds | None
    enable_network_isolation: bool | None
    image: TritonImage = field(default_factory=TritonImage.dlc)

    @property
    def chooses_ami(self) -> bool:
        """Whether the images of the components decide the AMI."""
        return False

    @property
    def instance_type(self) -> InstanceType:
        """The type of the instances."""
        if self.known_type is None:
            raise InvalidValueError(
                f"{self.path}: the instance type decides what fits, and is not known; set "
                "instance_type in TritonComponentEndpoint.from_endpoint_attributes"
            )
        return self.known_type

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """The types of the instances, in order of priority."""
        return (self.instance_type,)

    @property
    def role(self) -> SharedRole:
        """The execution role, which the models of the components must have too."""
        if self.known_role is None:
            raise InvalidValueError(
                f"{self.path}: a component's model must have the role of its endpoint, which is "
                "not known; set role in TritonComponentEndpoint.from_endpoint_attributes"
            )
        return self.known_role

    def check(self, component: ComponentCopies) -> None:
        """Check that a further component fits.

        The instances of an imported endpoint are not known.
        """

    def check_image(self, image: TritonImage) -> None:
        """Check that all instance types can run an image.

        The AMI of an imported endpoint is not known.
        """

    def check_triton(self) -> None:
        """Check that the endpoint can have a component of Triton.

        The routing of an import is not known.
        """

    def add(self, component: PlacedComponent, image: TritonImage | ServingImage) -> None:
        """Note a component that was created on the endpoint, and the image of its container."""


@dataclass(kw_only=True, slots=True)
class CreatedHost(ComponentHost):
    """An endpoint of this app: its instances are known, and all its components.

    ``pools`` are its instance types, if it has several. ``images`` are those of Triton that need
    the GPU driver of the AMI, and ``amis`` those that other images need. ``changed`` is called when
    the AMI may have become another one.
    """

    known_type: InstanceType
    max_instance_count: float
    given_ami: InferenceAmi | str | None
    changed: Callable[[], None]
    pools: tuple[InstanceType, ...] = ()
    routes_by_prefix: bool = False
    images: list[TritonImage] = field(default_factory=list)
    amis: list[InferenceAmi] = field(default_factory=list)
    components: list[PlacedComponent] = field(default_factory=list)

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """The types of the instances, in order of priority."""
        return self.pools or (self.known_type,)

    def shortage(self, components: Sequence[ComponentCopies]) -> Shortage | None:
        """Return what the instances at the maximum of their number do not have enough of.

        Any of the types may be that of all instances.
        """
        for instance_type in self.types:
            instances = HostInstances(instance_type, self.max_instance_count)
            shortage = instances.shortage(components)
            if shortage is not None:
                return shortage
        return None

    def can_hold(self, component: ComponentCopies) -> bool:
        """Return whether an instance of each type has the memory that one copy takes."""
        for instance_type in self.types:
            memory_mib = memory_mib_of(instance_type)
            if memory_mib is not None and memory_mib < component.used_memory_mib:
                return False
        return True

    def check(self, component: ComponentCopies) -> None:
        """Check that the copies of a further component fit beside those of the others."""
        others = [placed.initial for placed in self.components]
        shortage = self.shortage([*others, component])
        if shortage is not None:
            raise InvalidValueError(
                f"{self.path}: the first copies of its components {shortage.reason}; raise "
                "max_instance_count, use a larger instance type, or lower copy_count or the "
                f"reservations:\n{shortage.table}"
            )

    @property
    def chooses_ami(self) -> bool:
        """Whether the images of the components decide the AMI."""
        return self.given_ami is FOR_THE_IMAGE

    def check_triton(self) -> None:
        """Check that the endpoint can have a component of Triton."""
        if self.routes_by_prefix:
            raise InvalidValueError(
                f"{self.path}: routing_strategy PREFIX_AWARE compares the beginnings of bodies, "
                "which are prompts for containers of language models, and names and shapes of "
                "tensors for Triton; use LEAST_OUTSTANDING_REQUESTS, or a second "
                "TritonComponentEndpoint for this component"
            )

    def add(self, component: PlacedComponent, image: TritonImage | ServingImage) -> None:
        """Note a component that was created on the endpoint,
        and choose the AMI for all images again.
        """
        self.components.append(component)
        if component.construct.uses_gpus is not False:  # the AMI matters for its GPU driver only
            if isinstance(image, TritonImage):
                self.images.append(image)
            elif image.ami is not None:
                self.amis.append(image.ami)
        self.changed()

    def inference_ami_version(self) -> str | None:
        """Return the AMI that was given, or the one that the newest image needs."""
        return self._ami_versions(self.images)[self.known_type]

    def check_image(self, image: TritonImage) -> None:
        """Check that one AMI supports the image, and those of the other components,
        on all types.
        """
        # The endpoint itself has the warnings; here, only the errors count.
        for _warning in ami_findings(self.given_ami, self._ami_versions([*self.images, image])):
            pass

    def _ami_versions(self, images: list[TritonImage]) -> dict[InstanceType, str | None]:
        """The AMI that each type needs for the images, or the one that was given."""
        if self.given_ami is not FOR_THE_IMAGE:
            return dict.fromkeys(self.types, given_ami_version(self.given_ami))
        return {
            instance_type: self._needed_ami_version(images, instance_type)
            for instance_type in self.types
        }

    def _needed_ami_version(
        self, images: list[TritonImage], instance_type: InstanceType
    ) -> str | None:
        """The newest AMI that an image needs on a type; ``None`` if SageMaker chooses it."""
        needed = list(self.amis)
        if images or not needed:
            newest_release = _newest_release(images or [self.image])
            choice = default_inference_ami(newest_release, instance_type)
            if choice.ami is not None:
                needed.append(choice.ami)
        return newest_ami(needed).version if needed else None

    def ami_findings(self) -> Iterator[Finding]:
        """Yield a warning for each image that may not start on the AMI that all components have."""
        if len(self.types) > 1:
            yield from ami_findings(self.given_ami, self._ami_versions(self.images))

        chosen = self.inference_ami_version()
        releases = sorted({image.triton_version or "" for image in self.images})
        if self.given_ami is not FOR_THE_IMAGE:
            for release in releases:
                mismatch = cuda_mismatch(chosen, release or None, self.known_type)
                if mismatch is not None:
                    yield mismatch
            return

        for release in releases:
            yield from self._release_findings(release or None, chosen)

        # The driver of another CUDA major version may not run the container; see cuda_mismatch.
        different_amis = {ami.version: ami for ami in self.amis}
        for ami in different_amis.values():
            if ami.version != chosen and not is_same_cuda(ami, chosen):
                yield _different_amis(f"an image needs the inference AMI {ami}", chosen)

    def _release_findings(self, release: str | None, chosen: str | None) -> Iterator[Finding]:
        """Yield a warning if images of a Triton release may not start on the chosen AMI.

        ``release`` is ``None`` for images whose release is not known, and ``chosen`` if SageMaker
        chooses the AMI.
        """
        image = "an image" if release is None else f"image {release}"
        choice = default_inference_ami(release, self.known_type)
        if choice.finding is None:
            if choice.version != chosen:
                needed = choice.version or "that SageMaker chooses"
                yield _different_amis(f"{image} needs the inference AMI {needed}", chosen)
            return

        if chosen is None:
            yield choice.finding
            return
        yield Finding(
            choice.finding.code,
            choice.finding.severity,
            "image",
            f"it is not known which inference AMI {image} needs; it runs on {chosen}, "
            "which another component needs",
            "set triton_version of the image, or inference_ami_version of the endpoint",
            source=choice.finding.source,
        )


def _different_amis(needed: str, chosen: str | None) -> Finding:
    """Return the warning about an image that needs another AMI than the chosen one."""
    return Finding(
        "component-images-need-different-amis",
        Severity.WARNING,
        "image",
        f"{needed}, and another component needs {chosen or 'that SageMaker chooses'}, but all "
        "components of an endpoint have the same",
        "use images of the same CUDA version, or a second TritonComponentEndpoint",
        source=(
            "packages/check/src/triton_model_check/facts/inference_ami.json: AMIs by image version"
        ),
    )


def _newest_release(images: list[TritonImage]) -> str | None:
    """The newest known Triton release of the images, or ``None``.

    The driver for it also runs older releases.
    """
    known = []
    for image in images:
        release = image.triton_version
        if release is not None and not is_token(release):
            known.append(release)
    return max(known, default=None)
