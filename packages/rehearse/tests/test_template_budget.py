"""Small templates that stand for any amount of work: references that share, repeat and nest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdk_rehearse.updates.versions import read_version
from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.intrinsics import TemplateBudgetError
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template, references
from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards
from constructs_triton_core.errors import TemplateError

MODEL, STACK = "AWS::SageMaker::Model", "AWS::CloudFormation::Stack"


def _named(names: list[Any]) -> SynthesizedStack:
    """Return a stack with a model for each name."""
    resources = {
        f"M{number}": {"Type": MODEL, "Properties": {"ModelName": name}}
        for number, name in enumerate(names)
    }
    return SynthesizedStack("Shop", Template({"Resources": resources}))


def test_conditions_are_evaluated_once() -> None:
    """Sixty conditions that use the one before twice stand for 2^60 evaluations."""
    conditions: dict[str, Any] = {"C0": {"Fn::Equals": ["a", "a"]}}
    for number in range(1, 60):
        conditions[f"C{number}"] = {"Fn::And": [{"Condition": f"C{number - 1}"}] * 2}
    body = {"Conditions": conditions, "Resources": {"M": {"Type": MODEL, "Condition": "C59"}}}
    assert SynthesizedStack("Shop", Template(body)).created(MODEL) == ["M"]


@pytest.mark.parametrize(
    "name",
    [
        lambda one: {"Fn::Join": ["", [{"Ref": f"M{one}"}] * 4]},
        lambda one: {"Fn::Sub": f"${{M{one}}}" * 4},
        lambda one: {"Fn::Sub": ["${A}${A}${A}${A}", {"A": {"Ref": f"M{one}"}}]},
        lambda one: {"Fn::Join": ["a" * 200_000, [{"Ref": f"M{one}"}] * 3]},
    ],
    ids=["join", "sub", "variables", "separator"],
)
def test_text_that_doubles_is_one_error(name: Callable[[int], Any]) -> None:
    """A name that contains the one before four times, thirty deep, has 4^30 characters."""
    stack = _named(["aaaa", *map(name, range(30))])
    with pytest.raises(
        TemplateBudgetError, match=r"^Shop/M29: Fn::\w+: its value has more than 1,000,000"
    ):
        stack.known_properties("M29")


def test_lists_that_double_are_one_error() -> None:
    """A list counts as often as it is used, because who writes it as JSON walks it as often."""
    outputs: dict[str, Any] = {"O0": {"Value": ["a"] * 9}}
    for number in range(1, 40):
        parts = [{"Fn::ImportValue": f"O{number - 1}"}] * 2
        outputs[f"O{number}"] = {"Value": {"Fn::If": ["C", parts, ""]}}

    class _App:
        def exported(self, name: str, _: str) -> Any:
            return stack.output(name)

        def output(self, stack: str, name: str, region: str) -> Any:
            raise NotImplementedError

    body = {"Conditions": {"C": {"Fn::Equals": [1, 1]}}, "Outputs": outputs}
    stack = SynthesizedStack("Shop", Template(body), outputs=_App())
    with pytest.raises(
        TemplateBudgetError, match=r"its references take more than 2,000,000 steps to follow"
    ):
        [stack.output(f"O{number}") for number in range(40)]


def test_failures_are_remembered() -> None:
    """Sixty names that use the next one twice and are unknown in the end are their logical IDs."""
    names = [{"Fn::Sub": f"${{M{one}}}${{M{one}}}${{Unknown}}"} for one in range(1, 60)]
    assert _named([*names, "a"]).name_of("M0") == "M0"


def test_chains_have_a_depth() -> None:
    """A long chain of references is an error in words; a circle leaves the name unknown."""
    stack = _named(["a", *({"Fn::Sub": f"${{M{one}}}"} for one in range(100))])
    assert stack.name_of("M50") == "a"
    stack = _named(["a", *({"Fn::Sub": f"${{M{one}}}"} for one in range(100))])
    with pytest.raises(
        TemplateBudgetError, match=r"Shop/M100: Fn::Sub: is nested more than 64 functions"
    ):
        stack.name_of("M100")
    circle = [{"Fn::Join": ["", [{"Ref": f"M{(one + 1) % 9}"}] * 2]} for one in range(9)]
    assert set(_named(circle).name_of("M0")) <= set("M0123456789")


def test_scans_of_many_resources_are_counted() -> None:
    """Each variant looks for its model among all resources, so their product is bounded."""
    stack = _named([f"m{number}" for number in range(5000)])
    with pytest.raises(TemplateBudgetError, match=rf"^Shop/{STACK}: its references take more than"):
        [stack.created(STACK) for _ in range(5000)]


def test_substitutions_are_found_in_linear_time() -> None:
    """Text with 200,000 beginnings of a name and no end has none."""
    assert references({"Fn::Sub": "${A}" + "${" * 200_000}) == {"A"}


def test_wildcards_of_policies_are_matched_in_linear_time() -> None:
    """A pattern with fifty asterisks is not tried in every way."""
    assert not matches_wildcards("arn:aws:s3:::" + "*a" * 50 + "b", "arn:aws:s3:::" + "a" * 500)
    assert matches_wildcards("arn:aws:s3:::b/[x]/?", "arn:aws:s3:::b/[x]/y")


def _write(folder: Path, artifacts: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"version": "1", "artifacts": artifacts}))


def test_nested_stacks_that_share_a_template_are_counted(tmp_path: Path) -> None:
    """Thirty templates of which each nests the next twice stand for 2^30 stacks."""
    for number in range(30):
        nested = {"Type": STACK, "Metadata": {"aws:asset:path": f"{number + 1}.json"}}
        (tmp_path / f"{number}.json").write_text(
            json.dumps({"Resources": {"A": nested, "B": nested}})
        )
    (tmp_path / "30.json").write_text("{}")
    _write(
        tmp_path,
        {"Shop": {"type": "aws:cloudformation:stack", "properties": {"templateFile": "0.json"}}},
    )
    with pytest.raises(
        TemplateError, match=r"has more than 2,000 stacks, nested ones and those of stages"
    ):
        list(Assembly(tmp_path).all_stacks())


def test_stages_that_share_a_folder_are_counted(tmp_path: Path) -> None:
    """Thirty folders of which each has the next as two stages,
    read by ``graph`` and ``rehearse``.
    """
    for number in range(30):
        stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": f"../{number + 1}"}}
        _write(tmp_path / str(number), {"A": stage, "B": stage})
    _write(tmp_path / "30", {})
    for read in (lambda path: list(Assembly(path).all_stacks()), read_version):
        with pytest.raises(TemplateError, match=r"has more than 2,000 stacks"):
            read(tmp_path / "0")


def test_a_stage_that_contains_itself_is_an_error_of_a_rehearsal(tmp_path: Path) -> None:
    """It was endless for ``rehearse``, which walked the stages on its own."""
    _write(tmp_path, {"A": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "."}}})
    with pytest.raises(TemplateError, match="a stage contains itself"):
        read_version(tmp_path)
