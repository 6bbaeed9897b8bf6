"""The project's apps, each deployed, deployed again and destroyed on an AWS on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deploy_twice import (
    NOT_DEPLOYED,
    PROJECT,
    deployable_stacks,
    live_through_deployments,
    project_apps,
    synthesize_apps,
)
from loopback_aws import Assembly, LoopbackAws

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_examples")]

APPS = [name for name in project_apps(PROJECT) if name not in NOT_DEPLOYED]
ANYWHERE = "aws://unknown-account/unknown-region"
STAGING, PRODUCTION = "aws://111111111111/eu-west-1", "aws://222222222222/eu-west-1"
#: Where an app's stacks belong, if they are bound to an environment.
BOUND = {"pipelines_stage": [STAGING, PRODUCTION]}
CASES = sorted((where, name) for name in APPS for where in BOUND.get(name, [ANYWHERE]))


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every app, synthesized."""
    return synthesize_apps(tmp_path_factory.mktemp("apps"), APPS)


@pytest.fixture(scope="module")
def account_in() -> Iterator[Callable[[str], LoopbackAws]]:
    """Gives an environment's account, and ends the one before: there is one at a time in a process."""
    current: dict[str, LoopbackAws] = {}
    with ExitStack() as running:

        def account_in(environment: str) -> LoopbackAws:
            if environment not in current:
                current.clear()
                running.close()
                place = () if environment == ANYWHERE else environment.removeprefix("aws://").split("/")
                current[environment] = running.enter_context(LoopbackAws(*place))
                current[environment].bootstrap()
            return current[environment]

        yield account_in


def stacks_in(assembly: Assembly, environment: str) -> list[tuple[Assembly, str]]:
    """The stacks that belong to an environment."""
    return [each for each in deployable_stacks(assembly) if each[0].environment(each[1]) == environment]


@pytest.mark.parametrize(("environment", "name"), CASES, ids=[" ".join(each) for each in CASES])
def test_app_lives_through_deployments(
    account_in: Callable[[str], LoopbackAws], environment: str, name: str, assemblies: Path
) -> None:
    """The app deploys, a second deployment changes nothing, and destroying it leaves nothing behind."""
    aws = account_in(environment)
    if name == "existing_bucket":
        put_what_another_team_has_left(aws, assemblies / "ensemble")
    stacks = stacks_in(Assembly(assemblies / name), environment)
    assert stacks != []
    live_through_deployments(aws, stacks)


def put_what_another_team_has_left(aws: LoopbackAws, packed: Path) -> None:
    """The bucket that exists already, and an archive in it."""
    s3, bucket = aws.client("s3"), "example-ml-platform"
    (archive,) = packed.glob("*.tar.gz")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="training/ranking-2024-11-02.tar.gz", Body=archive.read_bytes())


def test_no_stack_is_left_out(assemblies: Path) -> None:
    """Every stack of every app belongs to one of the environments in which it is deployed here."""
    for name in APPS:
        stacks = list(deployable_stacks(Assembly(assemblies / name)))
        deployed = [
            each
            for where in BOUND.get(name, [ANYWHERE])
            for each in stacks_in(Assembly(assemblies / name), where)
        ]
        assert len(stacks) == len(deployed) > 0
