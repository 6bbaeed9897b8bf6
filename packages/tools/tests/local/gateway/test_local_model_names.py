"""Models of a local run that are called by their names, with a web server in place of Triton."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer
from fake_container import FakeLoader, endpoint_of, fake_server, in_loop, running_container

from constructs_triton_client import ModelIndex, TritonClient
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.model_names import hint_for, read_index
from constructs_triton_tools.local.sources.specs import ContainerSpec

URL = "s3://bucket/models/"
TENANTS = {f"tenant{number:03}": f"tenant{number:03}-3f9c2a1b.tar.gz" for number in range(1000)}
THOUSAND = ContainerSpec("m", "", URL, indexed={"Sync": TENANTS})


async def refusal_of(
    folder: Path, container: ContainerSpec | None, *, endpoint: str = "e", name: str
) -> str:
    """Return what the client answers to a name, or the archive that it finds."""
    server = fake_server(folder, container=container)
    async with running_container(server, FakeLoader(200), "") as models:
        is_single = container is not None and not container.is_multi_model
        endpoints = {"e": endpoint_of(server, server.container, None if is_single else models)}
        async with TestServer(gateway_application(endpoints), shutdown_timeout=0.1) as gateway:
            client = TritonClient.for_endpoint(endpoint, endpoint_url=str(gateway.make_url("")))
            try:
                return await asyncio.to_thread(client.archive_of, name)
            except (InvalidValueError, InvocationError) as error:
                return str(error).replace(str(gateway.make_url("")).rstrip("/"), "http://local")


@in_loop
async def test_client_finds_the_models_of_a_local_run(tmp_path: Path) -> None:
    """A name becomes its archive; of 1,000 models, an unknown name gets a guess,
    and what lists all.
    """
    assert (
        await refusal_of(tmp_path / "a", THOUSAND, name="tenant571") == "tenant571-3f9c2a1b.tar.gz"
    )
    assert await refusal_of(tmp_path / "b", THOUSAND, name="tenan571") == (
        "target_model: http://local/endpoints/e/index.json has 1,000 models, and none is named "
        '"tenan571"; '
        'did you mean "tenant571"? `curl http://local/endpoints/e/index.json` lists all names'
    )
    assert (await refusal_of(tmp_path / "c", THOUSAND, name="zzz")).endswith(
        'use one of "tenant000", "tenant001", "tenant002" and 997 more '
        "(all: `curl http://local/endpoints/e/index.json`)"
    )


@in_loop
async def test_a_local_run_without_an_index_refuses_names(tmp_path: Path) -> None:
    """The sentences are those of a deployed endpoint: no index, not multi-model,
    and no such endpoint.
    """
    spec = ContainerSpec("m", "", URL)
    assert "s3://bucket/models/ has no index.json" in await refusal_of(
        tmp_path / "a", spec, name="mood"
    )
    single = ContainerSpec("m", "", URL, archive=Path("m.tar.gz"))
    assert "e is not a multi-model endpoint" in await refusal_of(
        tmp_path / "b", single, name="mood"
    )
    unknown = await refusal_of(tmp_path / "c", spec, endpoint="x", name="mood")
    assert "Endpoint x of account 123456789012 not found" in unknown


def test_index_is_that_of_the_folder_in_place_of_s3(tmp_path: Path) -> None:
    """It is read at each call, because models may be added; a damaged one names its location."""
    spec = ContainerSpec(
        "m", "", URL, archive_folder=tmp_path, indexed={"Sync": {"old": "old.tar.gz"}}
    )
    assert read_index(spec) is None
    (tmp_path / "index.json").write_text('{"version": 1, "target_models": {"new": "new.tar.gz"}}')
    assert read_index(spec) == ModelIndex({"new": "new.tar.gz"})
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(InvalidValueError, match=r"^s3://bucket/models/index\.json: must be"):
        read_index(spec)


@pytest.mark.parametrize(
    ("target_model", "expected"),
    [
        (
            "tenant007",
            'is the name of a model: set TargetModel to its archive "tenant007-3f9c2a1b.tar.gz"',
        ),
        ("tenan007", 'Did you mean "tenant007-3f9c2a1b.tar.gz"?'),
        ("tenant007-00000000.tar.gz", 'The archive of "tenant007" is "tenant007-3f9c2a1b.tar.gz".'),
        ("other.tar.gz", 'Did you mean "others.tar.gz"?'),
    ],
)
def test_hint_for_a_caller_with_boto3(target_model: str, expected: str) -> None:
    """A name, a misspelt one, an archive of another content, and an archive without a name."""
    assert expected in hint_for(target_model, ModelIndex(TENANTS), ["others.tar.gz"])
