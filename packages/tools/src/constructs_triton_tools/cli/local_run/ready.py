"""Prints what a local run serves, and how to call it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.model_index import ModelIndex, some_of
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from constructs_triton_tools.local.call_example import call_example, index_url, invocation_url
from constructs_triton_tools.local.gateway.model_names import list_command

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.inference_components import LocalComponent
    from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
    from constructs_triton_tools.local.sources.specs import ContainerSpec

__all__ = ["print_run", "print_run_as_json"]


def print_run_as_json(
    url: str, endpoints: Sequence[RunningEndpoint], *, page: str | None = None
) -> None:
    address = {} if page is None else {"page": f"{url}{page}"}
    described = [_describe(endpoint) for endpoint in endpoints]
    print_json({"url": url, **address, "endpoints": described}, indent=None)


def _describe(endpoint: RunningEndpoint) -> dict[str, object]:
    return {
        "name": endpoint.spec.name,
        "stack": endpoint.spec.stack,
        "inference_components": {
            name: {
                "variant": component.invoked_variant,
                "starts_at_zero": component.spec.starts_at_zero,
                **component.server.identity(),
                "log": str(component.server.log),
            }
            for name, component in endpoint.components.items()
        },
        "variants": {
            name: {
                "target_models": sorted(variant.spec.container.archives),
                "model_directory": str(variant.multi_model.folder) if variant.multi_model else None,
                **variant.server.identity(),
                "log": str(variant.server.log),
            }
            for name, variant in endpoint.variants.items()
        },
    }


def print_run(
    url: str,
    endpoints: Sequence[RunningEndpoint],
    *,
    page: str | None = None,
    bucket_folder: Path | None = None,
) -> None:
    regions: set[str] = set()
    for endpoint in endpoints:
        print_lines("", f"{endpoint.spec.name}  {invocation_url(url, endpoint)}")
        for name in endpoint.variants:
            print_lines(*_variant_lines(url, name, endpoint))
        print_lines(*(_component_line(component) for component in endpoint.components.values()))

        # The calls of further endpoints in a Region have the same client.
        is_first = endpoint.spec.region not in regions
        example = call_example(url, endpoint, bucket_folder, has_client=is_first)
        print_lines(*example.split("\n"))
        regions.add(endpoint.spec.region)
    if page is not None:
        print_lines(f"look at it: {url}{page}", "")
    print_lines("ready (press Ctrl-C to stop)")


def _variant_lines(url: str, name: str, endpoint: RunningEndpoint) -> list[str]:
    variant = endpoint.variants[name]
    container = variant.spec.container
    if variant.multi_model is None:
        return [f"  variant {name}: {_model_of(container)}"]
    models = _models_of(variant.multi_model, index_url(url, endpoint))
    if container.fetch_archive is not None:
        archives = f"the archives below {container.model_data_url}, downloaded on the first call"
        if not models:
            return [f"  variant {name}: {archives}"]
        return [f"  variant {name}: {models}", f"  {archives}"]
    return [
        f"  variant {name}: {models or 'no archives yet'}",
        f"  archives that you copy into {variant.multi_model.folder} can be called immediately",
    ]


def _models_of(container: MultiModelContainer, url: str) -> str:
    """Return how many models or archives there are, and a few of them,
    as there may be thousands.
    """
    index = container.index()
    if index is not None and index.target_models:
        named = ModelIndex(index.target_models, url)
        return (
            f"{_counted(len(named.target_models), 'model')} by name: "
            f"{some_of(named.target_models, named.listing)}"
        )
    archives = container.archive_names()
    if not archives:
        return ""
    shown = some_of(archives, list_command(container.folder))
    return f"{_counted(len(archives), 'archive')}: {shown}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _component_line(component: LocalComponent) -> str:
    start = "; starts at zero copies, its first call wakes it" if component.copies.are_zero else ""
    return (
        f"  inference component {component.spec.name}: {_model_of(component.spec.container)}{start}"
    )


def _model_of(container: ContainerSpec) -> str:
    return container.environment.get(
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "the archive's only model"
    )
