"""``dev/project/coverage.md`` has a row for every property of the L1 classes
that constructs create.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import constructs_triton as constructs

PROJECT = Path(__file__).resolve().parents[2]
RESOURCES = {
    "CfnModel": "AWS::SageMaker::Model",
    "CfnEndpointConfig": "AWS::SageMaker::EndpointConfig",
    "CfnEndpoint": "AWS::SageMaker::Endpoint",
    "CfnInferenceComponent": "AWS::SageMaker::InferenceComponent",
}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_coverage_doc", PROJECT / "dev" / "generate_coverage_doc.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_property_has_a_row(generator: ModuleType) -> None:
    """Each property of the CDK's classes has a row, and each row a property."""
    assert generator.missing() == []
    assert generator.superfluous() == []


def test_page_is_generated(generator: ModuleType) -> None:
    """The page in docs/ is the output of its generator."""
    assert generator.OUTPUT.read_text() == generator.render(), (
        "run python dev/generate_coverage_doc.py"
    )


def _keywords() -> set[str]:
    """Return every name that the table may contain:
    keywords of the constructs and of their values.
    """
    takers = [
        *(
            constructs.TritonEndpoint,
            constructs.TritonEnsembleEndpoint,
            constructs.TritonMultiModelEndpoint,
        ),
        *(constructs.TritonComponentEndpoint, constructs.TritonInferenceComponent),
        *(
            constructs.AsyncInferenceConfig,
            constructs.CapacityReservationConfig,
            constructs.DataCapture,
            constructs.CoreDump,
            constructs.MetricsConfig,
        ),
    ]
    names = {
        name for each in takers for name in inspect.signature(vars(each)["__init__"]).parameters
    }
    deployments = (constructs.Deployment, constructs.ComponentDeployment)
    ways = (
        value.__func__
        for each in deployments
        for value in vars(each).values()
        if isinstance(value, classmethod)
    )
    names |= {name for way in ways for name in (way.__name__, *inspect.signature(way).parameters)}
    return names | set(constructs.EndpointOptions.__annotations__)


def test_keywords_of_the_table_exist(generator: ModuleType) -> None:
    """The table contains only keywords that exist."""
    said = {cell for rows in generator.TYPED.values() for cell in rows.values()}
    words = {
        word
        for cell in said
        for word in re.findall(r"[a-z]+(?:_[a-z0-9]+)+", cell.split("`endpoint.")[0])
    }
    sources = {"from_s3_prefix", "from_model_package"}
    methods = {"auto_scale_instance_count", "add_rollback_alarms", *sources}
    assert words - _keywords() - methods == set()
    for name in methods - sources:
        assert hasattr(constructs.TritonEndpoint, name)
    assert all(hasattr(constructs.ModelSource, name) for name in sources)


def test_paths_of_unsupported_properties_exist(generator: ModuleType) -> None:
    """CloudFormation's schema has every path that the page gives for an override."""
    unknown = [
        f"{resource}: {row.path}"
        for name, resource in RESOURCES.items()
        for row in generator.LEFT_OUT[name].values()
        if row.path is not None and not _is_known(resource, row.path)
    ]
    assert unknown == []


def _is_known(resource: str, path: str) -> bool:
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(
        region="us-east-1", resource_type=resource
    ).schema
    place = schema
    for part in path.split("."):
        while "$ref" in place:
            place = schema["definitions"][place["$ref"].rpartition("/")[2]]
        place = place["items"] if part.isdigit() else place["properties"].get(part)
        if place is None:
            return False
    return True
