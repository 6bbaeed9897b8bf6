"""The custom resources of a stack that place models in S3."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import TemplateError
from constructs_triton_functions.model_sync.properties import SyncProperties

__all__ = ["model_syncs"]


def model_syncs(
    stack: SynthesizedStack, resource_type: str, url: str
) -> Iterator[tuple[str, SyncProperties]]:
    """Yield the custom resources that place models below a prefix of S3, by logical ID."""
    for logical_id in stack.created(resource_type):
        properties = stack.known_properties(logical_id)
        try:
            sync = SyncProperties.from_cloudformation(properties)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TemplateError(
                f"{stack.name}/{logical_id}: its properties have the wrong form ({error!r}); "
                "run `npx cdk synth` again"
            ) from error
        if f"{sync.model_data_url}{sync.folder}" == url:
            yield logical_id, sync
