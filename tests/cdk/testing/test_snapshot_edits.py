"""Twenty edits of a stack and the lines of its snapshot that each changes,
a table for maintainers.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from cdk_apps import ENVIRONMENT

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.testing import (
    TritonTemplateExtension,
    assert_no_replacement,
    stable_template,
)

PROJECT = Path(__file__).resolve().parents[3]
MODELS = PROJECT / "assets" / "model_repositories"
PAGE = PROJECT / "dev" / "project" / "snapshots.md"


@dataclass(frozen=True)
class Sample:
    """The properties of the sample stack: an ensemble that scales, and a multi-model endpoint."""

    models: Path = MODELS
    endpoint: dict[str, Any] = field(default_factory=dict)
    max_capacity: int = 5
    gpu_target: float = 60
    scale_in_cooldown: cdk.Duration | None = None
    finish: Callable[[cdk.Stack, TritonEnsembleEndpoint], object] | None = None

    def stack(self, outdir: Path) -> cdk.Stack:
        """Return the stack in a new app."""
        context = {"@aws-cdk/aws-iam:minimizePolicies": True}
        stack = cdk.Stack(cdk.App(outdir=str(outdir), context=context), "Vision", env=ENVIRONMENT)
        digits = self._repository(stack, "Digits")
        endpoint = TritonEnsembleEndpoint(
            stack,
            "Endpoint",
            model_repository=digits,
            ensemble="digits",
            **{"instance_type": InstanceType.of("ml.g5.xlarge"), **self.endpoint},
        )
        endpoint.auto_scale_instance_count(
            min_capacity=1, max_capacity=self.max_capacity
        ).scale_on_gpu_utilization(
            "Gpu",
            target_utilization_percent=self.gpu_target,
            scale_in_cooldown=self.scale_in_cooldown,
        )
        TritonMultiModelEndpoint(
            stack,
            "Catalog",
            model_repository=self._repository(stack, "Shared", "catalog"),
            instance_type=InstanceType.of("ml.g5.xlarge"),
        )
        if self.finish is not None:
            self.finish(stack, endpoint)
        return stack

    def _repository(
        self, stack: cdk.Stack, id: str, folder: str | None = None
    ) -> TritonModelRepository:
        source = ModelSource.from_directory(self.models / (folder or id.lower()))
        return TritonModelRepository(stack, id, source=source)


BEFORE = Sample()
Edit = Callable[[Path], Sample]


def with_file(path: str, change: Callable[[bytes], bytes]) -> Edit:
    """Change a file of the models."""

    def edit(models: Path) -> Sample:
        file = models / path
        file.write_bytes(change(file.read_bytes()))
        return replace(BEFORE, models=models)

    return edit


def weights(content: bytes) -> bytes:
    """Return an archive of arrays that differs, but is valid."""
    return content + b"\0"


def with_model(models: Path) -> Sample:
    shutil.copytree(models / "catalog" / "sentiment", models / "catalog" / "mood")
    config = models / "catalog" / "mood" / "config.pbtxt"
    config.write_text(config.read_text().replace('"sentiment"', '"mood"'))
    return replace(BEFORE, models=models)


def without_model(models: Path) -> Sample:
    shutil.rmtree(models / "catalog" / "forecast")
    return replace(BEFORE, models=models)


def option(make: Callable[[], dict[str, Any]]) -> Edit:
    return lambda _: replace(BEFORE, endpoint=make())


def setting(make: Callable[[], dict[str, Any]]) -> Edit:
    return lambda _: replace(BEFORE, **make())


def add_caller(stack: cdk.Stack, endpoint: TritonEnsembleEndpoint) -> None:
    endpoint.grant_invoke(iam.Role.from_role_name(stack, "Caller", "shop"))


def add_alarm(stack: cdk.Stack, endpoint: TritonEnsembleEndpoint) -> None:
    endpoint.metric_invocation_5xx_errors().create_alarm(
        stack, "Errors", threshold=10, evaluation_periods=1
    )


def add_tag(stack: cdk.Stack, endpoint: TritonEnsembleEndpoint) -> None:
    cdk.Tags.of(endpoint).add("team", "vision")


def add_key(stack: cdk.Stack, endpoint: TritonEnsembleEndpoint) -> None:
    kms.Key(stack, "Key", enable_key_rotation=True)


def add_output(stack: cdk.Stack, endpoint: TritonEnsembleEndpoint) -> None:
    cdk.CfnOutput(stack, "EndpointName", value=endpoint.endpoint_name)


# The row of the table, and the edit.
EDITS: dict[str, Edit] = {
    "a line of a label file": with_file(
        "digits/postprocess/1/labels.txt", lambda old: old + b"none\n"
    ),
    "the weights of a model": with_file("digits/classifier/1/weights.npz", weights),
    "the code of a model": with_file(
        "catalog/sentiment/1/model.py", lambda old: old + b"\n# better\n"
    ),
    "the batch delay in a `config.pbtxt`": with_file(
        "digits/classifier/config.pbtxt",
        lambda old: re.sub(
            rb"max_queue_delay_microseconds: \d+", b"max_queue_delay_microseconds: 7", old
        ),
    ),
    "a new model on the multi-model endpoint": with_model,
    "a model removed from the multi-model endpoint": without_model,
    "`image`: another Triton version": option(lambda: {"image": TritonImage.dlc("25.09")}),
    "`instance_type`": option(lambda: {"instance_type": InstanceType.of("ml.g5.2xlarge")}),
    "`initial_instance_count`": option(lambda: {"initial_instance_count": 2}),
    "`environment`: one more variable": option(
        lambda: {"environment": TritonEnvironment(log_verbose=True)}
    ),
    "`container_startup_health_check_timeout`": option(
        lambda: {"container_startup_health_check_timeout": cdk.Duration.minutes(20)}
    ),
    "`endpoint_name`": option(lambda: {"endpoint_name": "digits"}),
    "the target of `scale_on_gpu_utilization`": setting(lambda: {"gpu_target": 70}),
    "`max_capacity`": setting(lambda: {"max_capacity": 8}),
    "`scale_in_cooldown`": setting(lambda: {"scale_in_cooldown": cdk.Duration.minutes(20)}),
    "a new alarm": setting(lambda: {"finish": add_alarm}),
    "a tag on the endpoint": setting(lambda: {"finish": add_tag}),
    "a new KMS key": setting(lambda: {"finish": add_key}),
    "`grant_invoke` to a role": setting(lambda: {"finish": add_caller}),
    "a new output": setting(lambda: {"finish": add_output}),
}
CONTENT = [
    name for name in EDITS if name.startswith(("a line", "the weights", "the code", "the batch"))
]


@dataclass(frozen=True)
class Snapshots:
    """Lines of the template, of the snapshot, and of the snapshot with digests."""

    raw: list[str]
    stable: list[str]
    digests: list[str]
    template: dict[str, Any]

    @classmethod
    def of(cls, sample: Sample, folder: Path) -> Snapshots:
        stack = sample.stack(folder / "cdk.out")
        template = stable_template(stack)
        return cls(
            _lines(_template(stack)),
            _lines(template),
            _lines(stable_template(stack, digests=True)),
            template,
        )


def _template(stack: cdk.Stack) -> dict[str, Any]:
    stage = cdk.Stage.of(stack)
    assert stage is not None
    path = Path(stage.synth().directory, stack.template_file)
    return dict(json.loads(path.read_text()))


@cache
def snapshots(edit: str | None) -> Snapshots:
    """Return the snapshots before any edit, or after one."""
    with TemporaryDirectory() as folder:
        if edit is None:
            return Snapshots.of(BEFORE, Path(folder))
        models = shutil.copytree(MODELS, Path(folder) / "models")
        return Snapshots.of(EDITS[edit](models), Path(folder))


def _lines(template: dict[str, Any]) -> list[str]:
    return json.dumps(template, indent=2, sort_keys=True).splitlines()


def changed_lines(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return how many lines were added and removed, as ``git diff --numstat`` counts them."""
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _row(edit: str) -> str:
    before, after = snapshots(None), snapshots(edit)
    raw, stable, digests = (
        changed_lines(getattr(before, kind), getattr(after, kind))
        for kind in ("raw", "stable", "digests")
    )
    return f"| {edit} | {_shown(raw)} | {_shown(stable)} | {_shown(digests)} |"


def _shown(count: tuple[int, int]) -> str:
    return "0" if count == (0, 0) else f"+{count[0]} -{count[1]}"


def _documented() -> Iterator[str]:
    _, _, rest = PAGE.read_text().partition("| edit | ")
    for line in rest.splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield line


def test_table_has_the_lines_that_each_edit_changes() -> None:
    """The table lists each edit with the lines that it changes."""
    expected = [_row(edit) for edit in EDITS]
    assert list(_documented()) == expected, "\n".join(expected)


@pytest.mark.parametrize("edit", CONTENT)
def test_new_content_changes_no_line(edit: str) -> None:
    """New content of a model changes no line of the snapshot,
    and with digests one for each archive.
    """
    before, after = snapshots(None), snapshots(edit)
    assert after.raw != before.raw
    assert after.stable == before.stable
    assert changed_lines(before.digests, after.digests) == (1, 1)


def test_edits_keep_endpoints_buckets_and_roles() -> None:
    """Of the twenty edits, only a new name replaces the endpoint."""
    before = snapshots(None).template
    replacing = []
    for edit in EDITS:
        try:
            assert_no_replacement(before, snapshots(edit).template)
        except AssertionError as error:
            replacing.append((edit, str(error)))
    assert [edit for edit, _ in replacing] == ["`endpoint_name`"]
    assert 'EndpointName was not set and is "digits"' in replacing[0][1]


def test_snapshot_file_is_the_stable_template(tmp_path: Path) -> None:
    """The extension writes a stack's stable template, and other values unchanged."""
    stack = BEFORE.stack(tmp_path)
    written = TritonTemplateExtension().serialize(stack)
    assert json.loads(written) == snapshots(None).template
    assert json.loads(TritonTemplateExtension().serialize({"kept": 1})) == {"kept": 1}
