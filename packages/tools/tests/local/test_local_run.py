"""Starting the servers of a run, without Triton."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fake_container import fake_server

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.local import run
from constructs_triton_tools.local.gateway.served_endpoints import served_endpoints
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server_start import LocalServer
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec


@pytest.mark.parametrize("is_multi_model", [False, True])
def test_served_variant(tmp_path: Path, is_multi_model: bool) -> None:
    """One model has none to load and unload; the archives of several are below
    the prefix at the start.
    """
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"archive")
    container = ContainerSpec("m", "", "s3://bucket/prefix/", archive=archive)
    if is_multi_model:
        container = replace(container, archive=None, archives={"a.tar.gz": archive})
    variant_spec = VariantSpec("v", container)
    endpoint = EndpointSpec("e", "Stack", (variant_spec,))
    server = LocalServer(endpoint, variant_spec, fake_server(tmp_path, [], container=container))
    served = served_endpoints([endpoint], [server], RunOptions(tmp_path), 2**30)
    variant = served["e"].variants["v"]
    assert (variant.spec.name, variant.server.label) == ("v", "e/v")
    placed = variant.multi_model and (variant.multi_model.prefix / "a.tar.gz").read_bytes()
    assert placed == (b"archive" if is_multi_model else None)


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


@pytest.mark.parametrize("kind", ["file", "null", "closed"])
def test_standard_input_that_cannot_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A file, /dev/null and a closed standard input are errors that name a pipe."""
    (tmp_path / "file").touch()
    path = Path("/dev/null") if kind == "null" else tmp_path / "file"

    async def wait() -> None:
        run._end_of_run(until_stdin_closes=True)

    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", None if kind == "closed" else stream)
        with pytest.raises(InvalidValueError, match=r"needs a pipe .* stdin=subprocess\.PIPE"):
            asyncio.run(wait())
