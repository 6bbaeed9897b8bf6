"""Instance types: a complete table that also accepts newer types."""

import json
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType, instance_type_names

PUBLISHED = json.loads((Path(__file__).parent / "published_instance_types.json").read_text())


def test_table_has_every_published_type_and_no_other() -> None:
    """The table is the API's list of 277 types (another library has 96 and
    none newer than 2023).
    """
    assert sorted(instance_type_names()) == sorted(PUBLISHED["instance_types"])


@pytest.mark.parametrize(
    ("name", "hardware"),
    [
        ("ml.g4dn.12xlarge", (4, "T4", 15360, "7.5", 900)),
        ("ml.g5.xlarge", (1, "A10G", 22888, "8.6", 250)),
        ("ml.g6e.48xlarge", (8, "L40S", 45776, "8.9", 7600)),
        ("ml.p5.48xlarge", (8, "H100", 81920, "9.0", 30400)),
        ("ml.m5.large", (0, None, None, None, 0)),
        ("ml.inf2.xlarge", (0, None, None, None, 0)),
        ("ml.dl1.24xlarge", (0, None, None, None, 4000)),
    ],
)
def test_hardware(name: str, hardware: tuple[object, ...]) -> None:
    """Only NVIDIA GPUs count, and the memory is that of each GPU."""
    found = InstanceType.of(name)
    gpu = (found.gpus, found.gpu_model, found.gpu_memory_mib, found.compute_capability)
    assert hardware == (*gpu, found.local_storage_gb)


@pytest.mark.parametrize(
    "family",
    [
        "g4dn",
        "g5",
        "g6",
        "g6e",
        "g7",
        "g7e",
        "p4d",
        "p4de",
        "p5",
        "p5e",
        "p5en",
        "p6-b200",
        "p6-b300",
    ],
)
def test_every_gpu_family_has_gpus(family: str) -> None:
    """No GPU family counts as CPU (another library gives g6, g6e and p5 the image for CPUs)."""
    members = [
        InstanceType.of(name) for name in instance_type_names() if name.split(".")[1] == family
    ]
    assert members
    assert all(member.has_gpu for member in members)


@pytest.mark.parametrize(
    ("name", "has_gpu"),
    [("ml.g9.xlarge", True), ("ml.p7-x.48xlarge", True), ("ml.m9.large", False)],
)
def test_unknown_type_is_accepted_and_its_family_decides(name: str, has_gpu: bool) -> None:
    """A type that AWS adds later is accepted; the letter of its family decides
    whether it has GPUs.
    """
    found = InstanceType.of(name)
    assert (found.is_known, found.has_gpu) == (False, has_gpu)
    assert (found.gpus, found.supports_volume_size) == (None, None)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("g5.xlarge", 'did you mean "ml.g5.xlarge"?'),
        ("ml.g5", 'write it as "ml.g5.xlarge"'),
        ("T4", "write it as"),
        ("ml.g5.xlrge", 'got "ml.g5.xlrge"; did you mean "ml.g5.xlarge"'),
        ("ml.g5.12xlage", 'got "ml.g5.12xlage"; did you mean "ml.g5.12xlarge"'),
        ("ml.gd4n.xlarge", 'got "ml.gd4n.xlarge"; did you mean "ml.g4dn.xlarge"'),
    ],
)
def test_other_strings_are_errors(name: str, hint: str) -> None:
    """A string that is not a SageMaker type, or a misspelled one,
    is an error with the most similar type.
    """
    with pytest.raises(InvalidValueError) as caught:
        InstanceType.of(name)
    assert hint in str(caught.value)


def test_unknown_type_has_a_suggestion() -> None:
    """The suggestion exists for unknown types only."""
    assert InstanceType.of("ml.g55.xlarge").nearest_known == 'did you mean "ml.g5.xlarge"?'
    assert InstanceType.of("ml.g5.xlarge").nearest_known == ""


def test_token_is_accepted_without_facts() -> None:
    """A type that is known only at deployment is neither an error nor checked."""
    found = InstanceType.of("${Token[TOKEN.12]}")
    assert (found.is_known, found.gpus, found.family, found.nearest_known) == (False, None, "", "")


@pytest.mark.parametrize(
    ("name", "is_supported"),
    [
        ("ml.m5.large", True),
        ("ml.g5.xlarge", False),
        ("ml.g7e.2xlarge", False),
        ("ml.p6e-gb200.36xlarge", None),
    ],
)
def test_volume_size_depends_on_local_storage(name: str, is_supported: bool | None) -> None:
    """Types with local NVMe support no volume size,
    including families that AWS's SDK does not know.
    """
    assert InstanceType.of(name).supports_volume_size is is_supported


def test_equal_names_are_equal_values() -> None:
    """Instance types can be compared and used as keys."""
    assert len({InstanceType.of("ml.g5.xlarge"), InstanceType.of("ml.g5.xlarge")}) == 1


@pytest.mark.parametrize("name", ["ml.g5.xlarge", "ml.new9.large", "${Token[TOKEN.12]}"])
def test_constructor_is_the_same_as_of(name: str) -> None:
    """A user of ``ec2.InstanceType`` writes the constructor; it has the hardware too."""
    assert InstanceType(name) == InstanceType.of(name)


@pytest.mark.parametrize("name", ["g5.xlarge", "ml.g5.xlrge", "x y"])
def test_constructor_refuses_what_of_refuses(name: str) -> None:
    """A misspelt name is no new type."""
    with pytest.raises(InvalidValueError, match="must be the name of a SageMaker instance type"):
        InstanceType(name)
