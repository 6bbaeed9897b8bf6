"""Which models of a multi-model container are loaded, with a web server in place of Triton."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fake_container import (
    CONFIG,
    FakeLoader,
    fake_server,
    in_loop,
    running_container,
    write_archive,
)

from constructs_triton_tools.local.gateway import multi_model
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton_tools.local.server.server import TritonServer
from constructs_triton_tools.local.server.unpacking import unpack
from constructs_triton_tools.local.sources.specs import ContainerSpec

HANGING_MODEL = {"m/config.pbtxt": b'backend: "python"\n', "m/1/notes.txt": b"no model.py"}


async def call(container: MultiModelContainer, *names: str) -> None:
    for name in names:
        async with container.use(f"{name}.tar.gz") as path:
            assert path.startswith("/models/")
            assert path.endswith("/invoke")


async def refusal(container: MultiModelContainer, target_model: str) -> RuntimeApiError:
    with pytest.raises(RuntimeApiError) as refused:
        async with container.use(target_model):
            pass
    return refused.value


def loaded(container: MultiModelContainer) -> str:
    """The loaded models' names, least recently used first."""
    return " ".join(name.removesuffix(".tar.gz") for name in container.loaded_models)


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> FakeLoader:
    """A loader that accepts each model; each takes 100 bytes of memory."""
    loader = FakeLoader(200)
    monkeypatch.setattr(TritonServer, "memory_bytes", lambda _: 100 * len(loader.loaded))
    return loader


@in_loop
async def test_least_recently_used_models_are_unloaded_when_memory_is_short(
    tmp_path: Path, loader: FakeLoader
) -> None:
    """Two of three models fit; the least recently used one is unloaded,
    and loads again when called.
    """
    async with running_container(fake_server(tmp_path), loader, "abc", 200) as container:
        for names, kept in (("aba", "b a"), ("c", "a c"), ("b", "c b")):
            await call(container, *names)
            assert loaded(container) == kept
        assert loader.loaded == {"c.tar.gz", "b.tar.gz"}


@in_loop
async def test_a_model_above_the_memory_limit_stays_loaded_alone(
    tmp_path: Path, loader: FakeLoader
) -> None:
    """It is never unloaded for itself: every other model is, and then loading ends."""
    async with running_container(fake_server(tmp_path), loader, "ab", 99) as container:
        await call(container, "a")
        assert loader.calls == ["POST a.tar.gz"]
        await call(container, "b")
        assert loader.calls == ["POST a.tar.gz", "POST b.tar.gz", "DELETE a.tar.gz"]


@in_loop
async def test_a_model_with_a_request_in_progress_is_not_unloaded_for_memory(
    tmp_path: Path, loader: FakeLoader
) -> None:
    """The next one in line is unloaded instead."""
    async with running_container(fake_server(tmp_path), loader, "abc", 200) as container:
        async with container.use("a.tar.gz"):
            await call(container, "b", "c")
        assert loaded(container) == "a c"


@in_loop
async def test_a_slow_load_is_not_ready_and_continues(
    tmp_path: Path, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets 429; the load that was started then serves the caller who comes again."""
    monkeypatch.setattr(multi_model, "_CALLER_TIMEOUT_SECONDS", 0.05)
    loader.may_answer.clear()
    async with running_container(fake_server(tmp_path), loader) as container:
        error = await refusal(container, "a.tar.gz")
        assert (error.status, error.code) == (429, "ModelNotReadyException")
        loader.may_answer.set()
        while not container.loaded_models:
            await asyncio.sleep(0.01)
        await call(container, "a")
        assert loader.calls == ["POST a.tar.gz"]


@in_loop
async def test_each_process_of_a_server_loads_a_model_once(
    tmp_path: Path, loader: FakeLoader
) -> None:
    """Three first calls at the same time share a load;
    after a restart nothing is loaded any more.
    """
    server = fake_server(tmp_path)
    async with running_container(server, loader) as container:
        for loads in (1, 2):
            await asyncio.gather(*(call(container, "a") for _ in range(3)))
            assert loader.calls == ["POST a.tar.gz"] * loads
            server.generation += 1


@in_loop
async def test_a_model_with_a_request_in_progress_is_not_unloaded_after_507(tmp_path: Path) -> None:
    """The caller of the new model gets the 507; when the other is idle it is unloaded."""
    loader = FakeLoader(200, 507, 507, 200)
    async with running_container(fake_server(tmp_path), loader) as container:
        async with container.use("a.tar.gz"):
            error = await refusal(container, "b.tar.gz")
            assert error.members["OriginalStatusCode"] == 507
            assert loaded(container) == "a"
        await call(container, "b")
        assert loaded(container) == "b"
        loads = ["POST a.tar.gz", "POST b.tar.gz"]
        assert loader.calls == [*loads, "POST b.tar.gz", "DELETE a.tar.gz", "POST b.tar.gz"]


@in_loop
async def test_507_unloads_one_model_after_the_other_and_then_reaches_the_caller(
    tmp_path: Path,
) -> None:
    """The least recently used goes first; its files stay, those of the rejected model do not."""
    loader = FakeLoader(200, 200, 507, 507, 507, 200)
    server = fake_server(tmp_path)
    async with running_container(server, loader, "abc") as container:
        await call(container, "a", "b")
        error = await refusal(container, "c.tar.gz")
        assert (error.code, error.members["OriginalStatusCode"]) == ("ModelError", 507)
        assert error.members["OriginalMessage"] == "the server's own words"
        assert loader.calls[2:] == [
            *("POST c.tar.gz", "DELETE a.tar.gz"),
            *("POST c.tar.gz", "DELETE b.tar.gz", "POST c.tar.gz"),
        ]
        assert len(list(server.models_directory.iterdir())) == 2
        await call(container, "a")
        assert loaded(container) == "a"


@in_loop
async def test_another_error_unloads_nothing_and_the_next_call_tries_again(tmp_path: Path) -> None:
    """The caller gets the status and the message of the server."""
    loader = FakeLoader(200, 400, 200)
    async with running_container(fake_server(tmp_path), loader) as container:
        await call(container, "a")
        error = await refusal(container, "b.tar.gz")
        assert (error.status, error.members["OriginalStatusCode"]) == (424, 400)
        await call(container, "b")
        assert loaded(container) == "a b"


@in_loop
async def test_a_model_that_the_server_has_loaded_already_can_be_called(tmp_path: Path) -> None:
    """409 means that it is loaded."""
    async with running_container(fake_server(tmp_path), FakeLoader(409)) as container:
        await call(container, "a")
        assert loaded(container) == "a"


@in_loop
async def test_without_a_cache_a_model_is_unloaded_after_its_last_request(tmp_path: Path) -> None:
    """ModelCacheSetting Disabled: unloaded, with its files, when no request uses it any more."""
    loader = FakeLoader(200)
    spec = ContainerSpec("m", "", "s3://bucket/models/", model_cache_setting="Disabled")
    server = fake_server(tmp_path, container=spec)
    async with running_container(server, loader) as container:
        async with container.use("a.tar.gz"):
            await call(container, "a")
            await asyncio.sleep(0.05)
            assert loaded(container) == "a"
        while any(server.models_directory.iterdir()):
            await asyncio.sleep(0.01)
        assert loader.calls == ["POST a.tar.gz", "DELETE a.tar.gz"]
        assert loaded(container) == ""


@in_loop
async def test_a_server_that_ends_during_a_load_is_a_model_error(tmp_path: Path) -> None:
    """Status 0, as for every container that does not answer; a later call loads the model."""
    loader = FakeLoader(200)
    server = fake_server(tmp_path)
    async with running_container(server, loader) as container:
        port, server.port = server.port, 1
        error = await refusal(container, "a.tar.gz")
        assert (error.code, error.members["OriginalStatusCode"]) == ("ModelError", 0)
        assert "did not answer" in str(error.members["OriginalMessage"])
        server.port = port
        await call(container, "a")


#: Another way to write an archive's path is another key, and a key that no file can have is
#: unknown.
UNKNOWN = (
    "absent.tar.gz ../a.tar.gz x/../../a.tar.gz /a.tar.gz ./a.tar.gz a.tar.gz/ a.tar.gz/. "
    "x/../a.tar.gz x//a.tar.gz . a.tar.gz/b"
)


@pytest.mark.parametrize("target_model", [*UNKNOWN.split(), "a" * 300])
@in_loop
async def test_an_unknown_archive_lists_those_there_are(tmp_path: Path, target_model: str) -> None:
    """SageMaker's words with bucket and key, then the archives;
    nothing outside the prefix is reached.
    """
    loader = FakeLoader(200)
    (tmp_path / "x").mkdir()
    async with running_container(fake_server(tmp_path), loader, ("a", "x/a")) as container:
        error = await refusal(container, target_model)
        assert (error.status, error.code, loader.calls) == (400, "ValidationError", [])
        assert f"(bucket: bucket, key: models/{target_model})" in str(error)
        assert str(error).endswith('Its archives: "a.tar.gz" and "x/a.tar.gz"')
        await call(container, "a", "x/a")


@in_loop
async def test_the_list_of_archives_is_cut(tmp_path: Path) -> None:
    """A catalog of many archives does not fill the message; an empty prefix has none."""
    names = [f"{number:03}" for number in range(21)]
    async with running_container(
        fake_server(tmp_path / "full"), FakeLoader(200), names
    ) as container:
        assert container.archives_note() == (
            'Its archives: "000.tar.gz", "001.tar.gz", "002.tar.gz" and 18 more '
            f"(all: `ls {container.folder}`)"
        )
    async with running_container(fake_server(tmp_path / "empty"), FakeLoader(200), "") as container:
        assert container.archives_note() == "It has no archives"


@in_loop
async def test_the_folder_of_the_prefix_is_read_at_each_call(tmp_path: Path) -> None:
    """An archive may be added or removed; a loaded model answers without its archive,
    as on SageMaker.
    """
    loader, folder = FakeLoader(200), tmp_path / "s3" / "models"
    spec = ContainerSpec("m", "", "s3://bucket/models/", archive_folder=folder)
    async with running_container(fake_server(tmp_path, container=spec), loader, "a") as container:
        assert str(await refusal(container, "new.tar.gz")).endswith('Its archives: "a.tar.gz"')
        folder.mkdir(parents=True)
        (folder / "index.json").write_text("{}")
        (tmp_path / "prefix" / "a.tar.gz").rename(folder / "new.tar.gz")
        await call(container, "new")
        (folder / "new.tar.gz").rename(folder / "other.tar.gz")
        await call(container, "new")
        assert loader.calls == ["POST new.tar.gz"]
        assert str(await refusal(container, "a.tar.gz")).endswith('Its archives: "other.tar.gz"')


@in_loop
async def test_archives_of_a_deployed_endpoint_are_fetched_once(tmp_path: Path) -> None:
    """The first call downloads the archive; what is not in S3 is reported with the S3 prefix."""
    asked: list[str] = []

    def fetch(target_model: str) -> Path | None:
        asked.append(target_model)
        return write_archive(tmp_path / "c") if target_model == "team/c.tar.gz" else None

    spec = ContainerSpec("m", "", "s3://bucket/models/", fetch_archive=fetch)
    async with running_container(
        fake_server(tmp_path, container=spec), FakeLoader(200)
    ) as container:
        await call(container, "team/c", "team/c")
        assert asked == ["team/c.tar.gz"]
        error = await refusal(container, "d.tar.gz")
        assert str(error).endswith("Its archives are those below s3://bucket/models/")


@pytest.mark.parametrize(
    ("files", "answer", "message"),
    [
        (None, (400, "ValidationError"), "Failed to extract model data archive"),
        # Newer servers answer 400 to a model for which this one would wait forever.
        (HANGING_MODEL, (424, "ModelError"), "m/1"),
    ],
    ids=["no archive", "hanging model"],
)
@in_loop
async def test_a_file_that_cannot_be_loaded_never_reaches_the_server(
    tmp_path: Path,
    loader: FakeLoader,
    files: dict[str, bytes] | None,
    answer: tuple[int, str],
    message: str,
) -> None:
    """The reason reaches the caller, no file is left, and a corrected archive can be called."""
    server = fake_server(tmp_path)
    async with running_container(server, loader) as container:
        broken = container.prefix / "c.tar.gz"
        broken.write_bytes(b"not an archive")
        if files is not None:
            write_archive(broken, files)
        error = await refusal(container, "c.tar.gz")
        assert (error.status, error.code) == answer
        assert error.members.get("OriginalStatusCode", 400) == 400
        assert message in str(error)
        assert (loader.calls, list(server.models_directory.iterdir())) == ([], [])
        write_archive(broken)
        await call(container, "c")


@pytest.mark.parametrize(
    ("config", "has_private_mounts", "ending"),
    [
        ("m/config.pbtxt", True, "/model"),
        ("config.pbtxt", True, "/model"),
        ("m/config.pbtxt", False, "/model"),
        ("config.pbtxt", False, ""),
    ],
)
@in_loop
async def test_the_server_is_given_the_folder_that_it_accepts(
    tmp_path: Path, config: str, has_private_mounts: bool, ending: str
) -> None:
    """/opt/ml/models/<hash>/model; without private mounts a configuration at
    the root needs the parent.
    """
    loader = FakeLoader(200)
    server = fake_server(tmp_path, has_private_mounts=has_private_mounts)
    async with running_container(server, loader, "") as container:
        write_archive(container.prefix / "c.tar.gz", {config: CONFIG})
        await call(container, "c")
        (folder,) = server.models_directory.iterdir()
        parent = "/opt/ml/models" if has_private_mounts else str(server.models_directory)
        assert loader.urls == [f"{parent}/{folder.name}{ending}"]


@in_loop
async def test_an_unloaded_model_is_not_unpacked_again(
    tmp_path: Path, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files stay on disk, as on SageMaker."""
    unpacked: list[Path] = []

    def count(archive: Path, directory: Path) -> None:
        unpacked.append(directory)
        unpack(archive, directory)

    monkeypatch.setattr(multi_model, "unpack", count)
    async with running_container(fake_server(tmp_path), loader, "ab", 100) as container:
        await call(container, "a", "b", "a")
        assert len(unpacked) == 2
