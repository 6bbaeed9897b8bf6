"""Models in an existing bucket, some of them packed by another team.

Archives are written to a prefix, and roles may read only that prefix.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

MODELS = Path(__file__).parents[2] / "assets" / "model_repositories"


class ExistingBucketStack(cdk.Stack):
    """Several models, and one archive that a training job has written to S3."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        platform = s3.Bucket.from_bucket_name(self, "Platform", "example-ml-platform")
        repository = TritonModelRepository(
            self,
            "Models",
            source=ModelSource.from_directory(MODELS / "catalog"),
            bucket=platform,
            prefix="triton/catalog/",
        )
        # Its content is not known at synth, so it is not checked. A new release needs a new key.
        repository.add_model(
            "ranking", ModelSource.from_bucket(platform, "training/ranking-2024-11-02.tar.gz")
        )
        TritonMultiModelEndpoint(
            self,
            "Catalog",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g5.xlarge"),
        )


app = cdk.App()
ExistingBucketStack(app, "ExistingBucket")
app.synth()
