"""Deletes an endpoint and its scaling, after a file has what creates both again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import (
    STARTED,
    STOPPED,
    STOPPING,
    SavedEndpoint,
    read_saved,
    write_saved,
)
from constructs_triton_tools.operations.stopping.snapshot import read_endpoint


def prepare_stop(aws: AwsCalls, name: str, path: Path, *, force: bool = False) -> SavedEndpoint:
    """Return what the file will hold. A stop or start that failed goes on with its own file.

    After a failure, AWS may have only a part of the scaling. So the file is not read again from AWS.
    """
    if not path.exists():
        return read_endpoint(aws, name, force=force)
    saved = read_saved(path)
    saved.require(path, name, aws.region)
    if saved.phase == STARTED:
        return read_endpoint(aws, name, stack=saved.stack, force=force)
    found = aws.find_endpoint(name)
    if found:
        if saved.phase == STOPPED:
            raise InvalidValueError(
                f"endpoint {name}: another program created it after it was stopped; restore its scaling with "
                f"`constructs-triton start {name} --file {path}`, or choose another file with --file"
            )
        check_endpoint_config(saved, found["EndpointConfigName"], path)
    return saved


def check_endpoint_config(saved: SavedEndpoint, running: str, path: Path) -> None:
    """Check that the endpoint still has the configuration of the file."""
    if running != saved.endpoint_config:
        raise InvalidValueError(
            f"endpoint {saved.name}: has configuration {running}, and {path} has {saved.endpoint_config}; "
            "it was deployed since. Register its scaling by hand (the file has the requests), then delete "
            "the file"
        )


def stop_endpoint(aws: AwsCalls, saved: SavedEndpoint, path: Path) -> None:
    """Write the file, delete scaling and endpoint, and wait until the endpoint is deleted.

    After a failure, the same call continues.

    Raises:
        InvalidValueError: AWS refuses a call; the file has everything that was deleted.
        OSError: the file cannot be written; if it is the first write, nothing was deleted.
    """
    write_saved(path, replace(saved, phase=STOPPING))
    for target in saved.scalable_targets:
        key = {name: target[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
        aws.find("application-autoscaling", "deregister_scalable_target", **key)
    aws.delete_endpoint(saved.name)
    write_saved(path, replace(saved, phase=STOPPED))
