"""Chooses the image of each variant, and explains how to get one that is not on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.local.sources.specs import EndpointSpec, VariantSpec, label_of, variants_of

_ECR = re.compile(r"(?P<registry>\d{12}\.dkr\.ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?)/.+")


def image_of(endpoint: EndpointSpec, variant: VariantSpec, images: Mapping[str, str]) -> str:
    """Return the image of the template, or the one that ``images`` has for the variant or the endpoint."""
    names = _names(endpoint, variant)
    image = next((images[name] for name in names if name in images), variant.container.image)
    if not image:
        raise LocalEndpointError(
            f"{endpoint.name}: has no image, because only templates and deployed endpoints name one; set "
            f"--image {endpoint.name}=IMAGE to an image with Triton's `serve` script, such as "
            "nvcr.io/nvidia/tritonserver:24.10-py3"
        )
    return image


def refuse_unused(images: Mapping[str, str], specs: Sequence[EndpointSpec]) -> None:
    """Check that each name of ``images`` is an endpoint, a variant or an image of the run."""
    known = {name: None for pair in variants_of(specs) for name in _names(*pair) if name}
    for name in images:
        if name not in known:
            raise InvalidValueError(
                f"--image: no endpoint, variant or image has this name, got {name!r}; use one of "
                f"{', '.join(known)}"
            )


def missing_image(label: str, endpoint: str, image: str, engine: str) -> LocalEndpointError:
    """Return the error for an image that is not on this machine, with the commands that pull it."""
    found = _ECR.fullmatch(image)
    login = (
        ""
        if found is None
        else f"\n  aws ecr get-login-password --region {found['region']} | {engine} login --username AWS "
        f"--password-stdin {found['registry']}"
    )
    return LocalEndpointError(
        f"{label}: the image {image} is not on this machine; pull it, or run another image with "
        f"--image {endpoint}=OTHER{login}\n  {engine} pull {image}"
    )


def _names(endpoint: EndpointSpec, variant: VariantSpec) -> tuple[str, ...]:
    """The names by which the image of a variant can be replaced, the most specific first."""
    return (label_of(endpoint, variant), endpoint.name, variant.container.image)
