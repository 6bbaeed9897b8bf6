"""One archive with a TensorRT plan for each GPU, for an endpoint that starts on either of two
instance types.

The two plans in `compiled` are stand-ins of a few bytes, which no GPU loads: they have only the
header of a plan. Replace them with your own model before you deploy:

    constructs-triton compile classifier.onnx --max-batch-size 64 --instance-type ml.g5.xlarge \
        --instance-type ml.g4dn.xlarge --role ARN --bucket NAME
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from constructs_triton import (
    InstancePool,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
)

COMPILED = Path(__file__).parent / "compiled"


class CompiledPlansStack(cdk.Stack):
    """Handwritten digits in TensorRT, on an A10G, or on a T4 if there is none."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        if any(each.stat().st_size < 1024 for each in COMPILED.glob("*/*/1/model.plan")):
            cdk.Annotations.of(self).add_warning_v2(
                "compiled-plans:stand-ins",
                "the plans are stand-ins: run `constructs-triton compile`, see app.py",
            )
        types = [InstanceType.of("ml.g5.xlarge"), InstanceType.of("ml.g4dn.xlarge")]
        TritonEndpoint(
            self,
            "Digits",
            # Triton loads the plan for the compute capability of the GPU that it finds.
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_compiled(COMPILED, instance_type=types)
            ),
            instance_pools=[InstancePool(each) for each in types],
        )


app = cdk.App()
CompiledPlansStack(app, "CompiledPlans")
app.synth()
