"""Starting the servers of a run, without Triton."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from fake_container import SETTINGS

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local import run
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.server.server import TritonServer
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec


def started(container: ContainerSpec, folder: Path, monkeypatch: pytest.MonkeyPatch) -> LocalVariant:
    """The variant of a server whose start only gets a folder."""

    async def start(server: TritonServer) -> None:
        server.directory = folder

    monkeypatch.setattr(TritonServer, "start", start)
    variant = VariantSpec("v", container)
    server = TritonServer("e/v", container, SETTINGS)
    return asyncio.run(run._start_variant(EndpointSpec("e", "Stack", (variant,)), variant, server, 1))


def test_started_single_model_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variant with one model has no models to load and unload."""
    container = ContainerSpec("m", "", "s3://bucket/m.tar.gz", archive=tmp_path / "m.tar.gz")
    variant = started(container, tmp_path, monkeypatch)
    assert (variant.spec.name, variant.server.label, variant.multi_model) == ("v", "e/v", None)


def test_started_multi_model_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archives of a multi-model variant are below its prefix when it has started."""
    (tmp_path / "a.tar.gz").write_bytes(b"archive")
    archives = {"a.tar.gz": tmp_path / "a.tar.gz"}
    container = ContainerSpec("m", "", "s3://bucket/prefix/", archives=archives)
    variant = started(container, tmp_path, monkeypatch)
    assert variant.multi_model is not None
    assert (variant.multi_model.prefix / "a.tar.gz").read_bytes() == b"archive"


def test_components_that_are_not_triton_are_reported() -> None:
    """Endpoints of which something runs are kept; a run without any ends with the reason."""
    variant = VariantSpec("v", ContainerSpec("m", "", "s3://bucket/m.tar.gz"))
    mixed = EndpointSpec("mixed", "Stack", (variant,), not_run=("chat",))
    other = EndpointSpec("other", "Stack", (), not_run=("talk",))
    lines: list[str] = []
    assert list(run._runnable([mixed, other], lines.append)) == [mixed]
    assert [line.partition(":")[0] for line in lines] == ["mixed/chat", "other/talk"]
    assert "its container is not Triton, so it does not run on your machine" in lines[0]
    with pytest.raises(LocalEndpointError, match=r"other: no container of Triton .*--endpoint"):
        run._runnable([other], lines.append)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_run_in_order(number: signal.Signals) -> None:
    """The run stops its servers itself: the signal, and each further one, only ends its waiting."""

    async def wait() -> int | None:
        end = run._end_of_run(until_stdin_closes=False)
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
        return await asyncio.wait_for(end, 60)

    assert asyncio.run(wait()) == number
