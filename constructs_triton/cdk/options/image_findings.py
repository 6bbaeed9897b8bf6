"""Warnings about the place and the tag of an image of your own."""

from __future__ import annotations

import re

from constructs_triton.cdk.options.image import LATEST, TritonImage
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

_ECR_HOST = re.compile(r"\.dkr[.-]ecr")


def image_findings(image: TritonImage) -> list[Finding]:
    """Return the warnings about the place and the tag of an image of your own."""
    return [finding for finding in (_other_registry(image), _moving_tag(image)) if finding]


def _other_registry(image: TritonImage) -> Finding | None:
    """Return a warning if an image is not in ECR; that of a token is not known."""
    place = image._given_place()
    if not place or is_token(place) or place.startswith("arn:") or _ECR_HOST.search(place):
        return None
    return Finding(
        "image-not-in-ecr",
        Severity.WARNING,
        "image",
        f'SageMaker pulls images from Amazon ECR, got "{place}"',
        "push a copy to ECR and pass it with from_ecr_repository; for a registry in your own VPC, "
        "set ImageConfig of the L1 model to RepositoryAccessMode Vpc and acknowledge this warning",
        source="SageMaker API reference: ImageConfig",
    )


def _moving_tag(image: TritonImage) -> Finding | None:
    """Return a warning if the tag of an image is ``latest``,
    under which another image may be pushed.
    """
    given = image._given_tag()
    if given is None or is_token(given) or given != LATEST:
        return None
    return Finding(
        "image-tag-latest",
        Severity.WARNING,
        "image",
        'the tag is "latest", so a new image under this tag changes no template and is not '
        "deployed, and the next deployment of something else may deploy it",
        "push images under tags that never change, and name one: "
        'from_ecr_repository(repository, "26.05-1")',
        source="SageMaker API reference: DeployedImage, ResolvedImage",
    )
