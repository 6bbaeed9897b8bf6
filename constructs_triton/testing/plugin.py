"""A pytest plugin whose fixtures run endpoints on this machine and call them, and which reports
snapshots.

pytest loads it in every run of an environment that has this package, so it imports nothing that
takes time until a fixture is used.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from constructs_triton.testing.snapshot_report import SnapshotReport
    from constructs_triton_client.triton_client import TritonClient
    from constructs_triton_tools.local.endpoint import LocalEndpoint

_SNAPSHOT_REPORT: pytest.StashKey[SnapshotReport] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("triton", "constructs-triton: endpoints in tests")
    group.addoption(
        "--triton-assembly",
        metavar="DIR",
        default="cdk.out",
        help="cloud assembly whose endpoint runs, unless the tests have a fixture triton_app "
        "(default: cdk.out)",
    )
    group.addoption(
        "--triton-endpoint", metavar="NAME", help="the endpoint to call, if there are several"
    )
    group.addoption(
        "--triton-deployed",
        metavar="NAME",
        help="call this endpoint in AWS, so that no endpoint runs on this machine",
    )
    group.addoption(
        "--triton-region",
        metavar="REGION",
        help="its Region (default: that of your AWS configuration)",
    )
    group.addoption(
        "--triton-engine",
        choices=("docker", "podman"),
        help=(
            "run the images of the template in containers (default: "
            "the Triton server of nvidia-pytriton)"
        ),
    )
    group.addoption(
        "--triton-require-server",
        action="store_true",
        help="fail the tests that need the Triton server where it cannot run (default: skip them)",
    )


@pytest.fixture(scope="module")
def triton_app(request: pytest.FixtureRequest) -> Any:
    """What ``triton_local_endpoint`` runs: the path of a cloud assembly.

    Define a fixture of this name that returns your ``cdk.App``, or the path of another cloud
    assembly.
    """
    return request.config.getoption("--triton-assembly")


@pytest.fixture(scope="module")
def triton_local_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of ``LocalEndpoint.from_assembly``, from the command line.

    Define a fixture of this name for others, such as ``{"stack": "Shop", "memory_limit_mib":
    2048}``.
    """
    names = {"endpoint": "--triton-endpoint", "engine": "--triton-engine"}
    return {name: request.config.getoption(option) for name, option in names.items()}


@pytest.fixture(scope="module")
def triton_local_endpoint(
    request: pytest.FixtureRequest, triton_app: Any, triton_local_options: dict[str, Any]
) -> Iterator[LocalEndpoint]:
    """Run the endpoints of ``triton_app`` on this machine until the module's tests have ended.

    The tests are skipped, with the reason, where the Triton server cannot run.
    """
    from constructs_triton_tools.local.endpoint_of_tests import local_endpoint, why_no_server

    reason = why_no_server(triton_local_options)
    if reason is not None:
        stop = pytest.fail if request.config.getoption("--triton-require-server") else pytest.skip
        stop(f"the Triton server cannot run: {reason}")
    with local_endpoint(triton_app, triton_local_options) as local:
        yield local


@pytest.fixture(scope="module")
def triton_client(request: pytest.FixtureRequest) -> TritonClient:
    """Return a client of the endpoint on this machine,
    or of the one that ``--triton-deployed`` names.
    """
    from constructs_triton_client.triton_client import TritonClient
    from constructs_triton_tools.local.endpoint_of_tests import client_of

    option = request.config.getoption
    if option("--triton-deployed"):
        return TritonClient.for_endpoint(
            option("--triton-deployed"), region_name=option("--triton-region")
        )
    return client_of(request.getfixturevalue("triton_local_endpoint"), option("--triton-endpoint"))


@pytest.hookimpl(wrapper=True)
def pytest_assertrepr_compare(
    config: pytest.Config, left: object, right: object
) -> Generator[None, list[list[str]], list[list[str]]]:
    """Replace what syrupy lists of a template's differences by a summary, and keep all of them."""
    explanations = yield
    # Only a test that has used the extension has loaded this module.
    module = sys.modules.get("constructs_triton.testing.snapshot_report")
    report: SnapshotReport | None = None
    if module is not None:
        report = module.SnapshotReport.of((left, right), config.rootpath)
    if report is None:
        return explanations
    config.stash[_SNAPSHOT_REPORT] = report
    (heading, *_), *_ = explanations
    return [[heading, report.summary]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Append the differences of a template to the report of its test,
    which pytest does not shorten.
    """
    report = yield
    found = item.config.stash.get(_SNAPSHOT_REPORT, None)
    if found is not None and call.excinfo is not None and found.summary in str(call.excinfo.value):
        add_section = getattr(report.longrepr, "addsection", None)
        if add_section is not None and found.differences:
            add_section(found.title, found.differences)
    return report
