"""Every rule has a variant that breaks it, and a change that fixes it."""

from dataclasses import replace
from typing import Any

import pytest

from constructs_triton_core.facts.instance_types import InstanceType
from triton_model_check.facts.compatibility import RULES, VariantFacts, check_compatibility


def ml(name: str, **values: Any) -> dict[str, Any]:
    return {"instance_type": f"ml.{name}", **values}


# code, values that break the rule, the one change that fixes it
EXAMPLES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("instance-type-unknown", ml("g55.xlarge"), ml("g5.xlarge")),
    ("instance-type-arm", ml("c7g.xlarge"), ml("c7i.xlarge")),
    ("instance-type-accelerator", ml("inf2.xlarge"), ml("g5.xlarge")),
    ("gpu-older-than-image", ml("p3.2xlarge", image_version="26.05"), {"image_version": "24.09"}),
    ("gpu-newer-than-image", ml("g7e.2xlarge", image_version="24.09"), {"image_version": "26.05"}),
    ("cpu-image-on-gpu-instance", ml("g6.xlarge", cpu_image=True), {"cpu_image": False}),
    ("gpu-image-on-cpu-instance", ml("t2.medium", cpu_image=False), ml("g5.xlarge")),
    ("gpu-limit-on-cpu-instance", ml("m5.large", has_gpu_load_limit=True), ml("g5.xlarge")),
    ("multi-model-gpu-undocumented", ml("g5.12xlarge", multi_model=True), ml("g5.4xlarge")),
    ("volume-size-on-nvme", ml("g5.xlarge", volume_size_gb=100), ml("m5.large")),
]


def _variant(**values: Any) -> VariantFacts:
    values["instance_type"] = InstanceType.of(values["instance_type"])
    return VariantFacts(**values)


def _codes(variant: VariantFacts) -> list[str]:
    return [finding.code for finding in check_compatibility(variant)]


@pytest.mark.parametrize(
    ("code", "broken", "change"), EXAMPLES, ids=[code for code, _, _ in EXAMPLES]
)
def test_rule_and_its_example(code: str, broken: dict[str, Any], change: dict[str, Any]) -> None:
    """The first variant breaks exactly this rule, with its value and a fix; the change fixes it."""
    (finding,) = check_compatibility(_variant(**broken))
    assert finding.code == code
    assert finding.path == next(rule.path for rule in RULES if rule.code == code)
    assert "got " in finding.message or broken["instance_type"] in finding.message
    assert finding.hint
    assert finding.source
    assert _codes(_variant(**{**broken, **change})) == []


def test_every_rule_has_an_example() -> None:
    """Every rule has a pair of variants."""
    assert [rule.code for rule in RULES] == [code for code, _, _ in EXAMPLES]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("p3.2xlarge", "use a newer GPU, or image 24.09"), ("p2.xlarge", "use a newer GPU")],
)
def test_hint_for_an_old_gpu_has_an_image_that_supports_it(name: str, hint: str) -> None:
    """For V100 it is the last image that supports it; for K80 a newer GPU,
    because no image does.
    """
    (finding,) = check_compatibility(_variant(**ml(name, image_version="26.05")))
    assert finding.hint == hint


def test_tokens_are_not_checked() -> None:
    """No rule applies to a type and version that are known only at deployment."""
    token = "${Token[TOKEN.7]}"
    variant = _variant(
        instance_type=token,
        image_version=token,
        cpu_image=False,
        multi_model=True,
        has_gpu_load_limit=True,
    )
    assert _codes(variant) == []
    assert (
        _codes(replace(variant, instance_type=InstanceType.of("ml.p3.2xlarge"), multi_model=False))
        == []
    )
