"""Prints the facts of the public packages as JSON; runs in the environment of ``facts_check.py``.

It imports nothing of this project, because sagemaker-core cannot be installed in the same
environment.
"""

from __future__ import annotations

import gzip
import json
import logging
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("sagemaker-core", "botocore", "cfn-lint", "moto")
# EC2 answers what a GPU has without ECC, which the T4 takes of its memory. The source is in
# facts/instance_types.json.
_USABLE_MIB = {"T4": 15360}
GPU_TYPE, CPU_TYPE = "ml.g5.xlarge", "ml.c5.xlarge"


def main() -> None:
    """Print all figures."""
    logging.disable(logging.CRITICAL)
    images = _image_table()
    figures = {
        "packages": {name: version(name) for name in PACKAGES},
        "images": images,
        "uris": _uris(images),
        "shapes": _shapes(),
        "cfn": _cloudformation(),
        "hardware": _hardware(),
    }
    print(json.dumps(figures))


def _image_table() -> Any:
    from sagemaker.core import image_uri_config  # noqa: PLC0415

    text = resources.files(image_uri_config).joinpath("sagemaker-tritonserver.json").read_text()
    return json.loads(text)


def _uris(images: Any) -> dict[str, str | None]:
    """The image of every Region, version and processor; ``None`` if the SDK raises an error."""
    import boto3  # noqa: PLC0415
    from sagemaker.core import image_uris  # noqa: PLC0415

    session = boto3.session.Session(region_name="us-east-1")
    partitions = session.get_available_partitions()
    regions = {
        region
        for each in partitions
        for region in session.get_available_regions("sagemaker", partition_name=each)
    }
    regions |= {region for row in images["versions"].values() for region in row["registries"]}

    def uri(region: str, release: str, instance_type: str) -> str | None:
        try:
            found = image_uris.retrieve(
                "sagemaker-tritonserver", region, version=release, instance_type=instance_type
            )
        except ValueError:
            return None
        return str(found)

    return {
        f"{region} {release} {processor}": uri(region, release, instance_type)
        for region in sorted(regions)
        for release in images["versions"]
        for processor, instance_type in (("gpu", GPU_TYPE), ("cpu", CPU_TYPE))
    }


def _shapes() -> dict[str, Any]:
    """Every constraint of the four service models, by ``<service>:<shape>``."""
    import botocore.session  # noqa: PLC0415

    loader = botocore.session.Session().get_component("data_loader")
    kept = ("type", "max", "min", "pattern", "enum")
    return {
        f"{service}:{name}": {key: shape[key] for key in kept if key in shape}
        for service in ("sagemaker", "sagemaker-runtime", "application-autoscaling", "lambda")
        for name, shape in loader.load_service_model(service, "service-2")["shapes"].items()
        if shape["type"] not in ("structure", "union")
    }


def _cloudformation() -> dict[str, list[str]]:
    """What CloudFormation accepts.

    The price list is not used: it has types that the API rejects.
    """
    import cfnlint  # noqa: PLC0415

    schemas = Path(str(cfnlint.__file__)).parent / "data" / "schemas"
    variant = _endpoint_config(schemas)["definitions"]["ProductionVariant"]["properties"]
    return {
        "instance_types": variant["InstanceType"]["enum"],
        "inference_amis": variant["InferenceAmiVersion"]["enum"],
    }


def _endpoint_config(schemas: Path) -> Any:
    for path in (schemas / "resources").glob("*.json"):
        text = path.read_text(encoding="utf-8")
        if "AWS::SageMaker::EndpointConfig" in text:
            schema = json.loads(text)
            if schema.get("typeName") == "AWS::SageMaker::EndpointConfig":
                return schema
    raise SystemExit("cfn-lint has no schema of AWS::SageMaker::EndpointConfig")


def _hardware() -> dict[str, dict[str, Any]]:
    """EC2's recorded responses to DescribeInstanceTypes,
    in the fields of ``facts/instance_types.json``.
    """
    import moto  # noqa: PLC0415

    packed = Path(str(moto.__file__)).parent / "ec2/resources/instance_types.json.gz"
    rows = json.loads(gzip.decompress(packed.read_bytes()))
    return {f"ml.{name}": _row(row) for name, row in rows.items()}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    gpus = [
        gpu for gpu in row.get("GpuInfo", {}).get("Gpus", []) if gpu["Manufacturer"] == "NVIDIA"
    ]
    architectures = row["ProcessorInfo"]["SupportedArchitectures"]
    found = {
        "vcpus": row["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": row["MemoryInfo"]["SizeInMiB"] / 1024,
        "architecture": "arm64" if "arm64" in architectures else "x86_64",
        "local_storage_gb": row.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "gpus": gpus[0]["Count"] if gpus else 0,
    }
    if gpus:
        model = gpus[0]["Name"]
        found |= {
            "gpu_model": model,
            "gpu_memory_mib": _USABLE_MIB.get(model, gpus[0]["MemoryInfo"]["SizeInMiB"]),
        }
    return found


if __name__ == "__main__":
    main()
