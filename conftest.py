"""The environment of all tests, those of the packages too,
and what tests of several folders use.
"""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.hooks import EventAliaser
from botocore.loaders import Loader

if TYPE_CHECKING:
    from cdk_rehearse import SimulatedAccount

# jsii prints a banner about Node's age on stderr; pytest would show it beside every failure.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")
# The tests do not write to the developer's cache.
os.environ["CONSTRUCTS_TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="constructs-triton-tests-")
# pytest keeps the folders of three runs. Those of runs that tests start are elsewhere: this run
# would delete its own at its end, which takes 20 seconds.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["CONSTRUCTS_TRITON_CACHE_DIR"]
# No test can reach an AWS account, even if the developer's shell has credentials.
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)

# Modules and tests stay until the end: searching them for garbage takes a quarter of the time of
# collection.
gc.disable()


_first_loader = functools.cache(botocore.session.create_loader)


def _loader_with_shared_cache(search_path_string: str | None = None) -> Loader:
    """A loader with search paths for its own session,
    and the service models that another has parsed.
    """
    loader = copy.copy(_first_loader(search_path_string))
    vars(loader)["_search_paths"] = list(loader.search_paths)  # boto3 adds to it
    return loader


# Each session parses the models of its services again: without a shared cache, a third of the time
# of most tests that call AWS or the simulated account.
botocore.session.create_loader = _loader_with_shared_cache

# Each client compares the names of its events with 200 old names again, a tenth of the time of such
# tests.
_aliaser: Any = EventAliaser  # its stubs are without private names
_event_name = functools.cache(_aliaser(None)._alias_event_name)
_aliaser._alias_event_name = lambda _self, event_name: _event_name(event_name)


def pytest_collection_finish() -> None:
    """From here on search for garbage, but not in what collection has made."""
    gc.freeze()
    # A search of everything takes half a second once moto and botocore are loaded, and would run
    # once a test.
    gc.set_threshold(10_000, 50, 10)
    gc.enable()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the processes of xdist send fewer messages."""
    if hasattr(session.config, "workerinput"):
        from distributed_tests import send_less

        send_less(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute tests by group and file."""
    if config.getoption("dist") != "loadgroup":
        return None
    from distributed_tests import FileScheduling

    return FileScheduling(config, log)


def pytest_unconfigure() -> None:
    """Remove the cache that this process created."""
    shutil.rmtree(os.environ["CONSTRUCTS_TRITON_CACHE_DIR"], ignore_errors=True)


_numbers = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder; pytest's own fixture reads the names of all earlier ones
    to find the next number.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(_numbers)}", numbered=False)


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    """A simulated account with the bucket of assets. The tests of a module share it."""
    from cdk_rehearse import SimulatedAccount

    with SimulatedAccount() as account:
        account.bootstrap()
        yield account


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for each test, so that none uses the developer's cache."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(directory))
    return directory


@pytest.fixture(scope="module")
def aws_url() -> Iterator[str]:
    """The URL of AWS APIs on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """S3 with an empty bucket ``models``; boto3 finds it by a variable."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_url)
    client = boto3.client("s3")
    client.create_bucket(Bucket="models")
    _empty_bucket(client)  # other tests write to it too
    yield client
    _empty_bucket(client)
    client.close()


def _empty_bucket(client: Any) -> None:
    for item in client.list_objects_v2(Bucket="models").get("Contents", ()):
        client.delete_object(Bucket="models", Key=item["Key"])


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded cases of a server, unpacked from the folder that the module
    names as ``ORACLE``.
    """
    from backports import tarfile

    oracle: Path = request.module.ORACLE
    directory = tmp_path_factory.mktemp(oracle.name)
    (packed,) = oracle.glob("cases.tar.*")
    with tarfile.open(packed) as archive:
        archive.extractall(directory, filter="data")
    return directory
