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


# What has keywords that the table may contain.
TAKERS = (
    constructs.TritonEndpoint,
    constructs.TritonEnsembleEndpoint,
    constructs.TritonMultiModelEndpoint,
    constructs.TritonComponentEndpoint,
    constructs.TritonInferenceComponent,
    constructs.AsyncInferenceConfig,
    constructs.CapacityReservationConfig,
    constructs.DataCapture,
    constructs.CoreDump,
    constructs.MetricsConfig,
)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The program that writes the page."""
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
    names = set(constructs.EndpointOptions.__annotations__)
    for owner in TAKERS:
        names.update(inspect.signature(vars(owner)["__init__"]).parameters)
    for deployment in (constructs.Deployment, constructs.ComponentDeployment):
        for member in vars(deployment).values():
            if isinstance(member, classmethod):
                names.add(member.__func__.__name__)
                names.update(inspect.signature(member.__func__).parameters)
    return names


def test_keywords_of_the_table_exist(generator: ModuleType) -> None:
    """The table contains only keywords that exist."""
    words: set[str] = set()
    for rows in generator.TYPED.values():
        for cell in rows.values():
            before_methods = cell.split("`endpoint.")[0]
            words.update(re.findall(r"[a-z]+(?:_[a-z0-9]+)+", before_methods))

    of_endpoints = {"auto_scale_instance_count", "add_rollback_alarms"}
    of_sources = {"from_s3_prefix", "from_model_package"}
    assert words - _keywords() - of_endpoints - of_sources == set()
    assert all(hasattr(constructs.TritonEndpoint, name) for name in of_endpoints)
    assert all(hasattr(constructs.ModelSource, name) for name in of_sources)


def test_paths_of_unsupported_properties_exist(generator: ModuleType) -> None:
    """CloudFormation's schema has every path that the page gives for an override."""
    unknown = []
    for name, resource_type in RESOURCES.items():
        for row in generator.LEFT_OUT[name].values():
            if row.path is not None and not _is_known(resource_type, row.path):
                unknown.append(f"{resource_type}: {row.path}")
    assert unknown == []


def _is_known(resource_type: str, path: str) -> bool:
    """Return whether CloudFormation's schema of a type has a property at this path."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(
        region="us-east-1", resource_type=resource_type
    ).schema
    place = schema
    for part in path.split("."):
        while "$ref" in place:
            place = schema["definitions"][place["$ref"].rpartition("/")[2]]
        place = place["items"] if part.isdigit() else place["properties"].get(part)
        if place is None:
            return False
    return True
