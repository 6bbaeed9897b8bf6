"""The failures of a job: what each message means, and what to do.

The first entry that matches is used. Sources: NVIDIA TensorRT v10.16 and v11.1 samples/common,
NVIDIA CUDA error codes, the SageMaker API reference and the developer guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from constructs_triton_tools.building.plans.job_request import JobRequest

#: Pattern of what AWS or the script says, cause, and fix.
_FAILURES = (
    (
        r"ResourceLimitExceeded|service limit",
        "the account's quota does not allow the instance",
        (
            'ask for a higher quota "{instance} for {kind} job usage" in Service Quotas, which is '
            "not the one of endpoints; "
            "or set --build-on to another type with the same GPU, or --job {other_kind}"
        ),
    ),
    (
        r"InsufficientInstanceCapacity|CapacityError|InsufficientCapacity|insufficient capacity",
        "AWS has no free instance of this type now",
        (
            "try again later, set --build-on to another size with the same GPU, "
            "or compile in another Region"
        ),
    ),
    (
        r"[Ii]nstance type.{0,80}not (supported|available)|UnsupportedInstanceType",
        "{kind} jobs do not have {instance} in {region}",
        "use --job {other_kind}, or compile in another Region with a bucket there",
    ),
    (
        r"ResourceInUse",
        "a job with this name exists already",
        "run the command again; it chooses another name",
    ),
    (
        r"VolumeSizeInGB|VolumeSize|VolumeKmsKeyId",
        "the disk does not fit the instance",
        "set --volume-size to at most the local NVMe of {instance}",
    ),
    (
        r"CannotPullContainer|ECRImage|Unable to pull|image.{0,40}(does not exist|not found)",
        "SageMaker cannot pull the image",
        (
            "allow ecr:BatchGetImage, ecr:GetDownloadUrlForLayer, ecr:BatchCheckLayerAvailability "
            "and ecr:GetAuthorizationToken for the role: "
            "`constructs-triton compile --policy job` prints its policy"
        ),
    ),
    (
        r"AssumeRole|assume the role|is not authorized to perform: iam:PassRole",
        "SageMaker cannot use the role",
        "let sagemaker.amazonaws.com assume it, and allow iam:PassRole for yourself: "
        "`constructs-triton compile --policy caller` prints the policy",
    ),
    (
        r"AccessDenied|Access Denied|not authorized|Forbidden|403",
        "a permission is missing",
        (
            "`constructs-triton compile --policy job` and `--policy "
            "caller` print what the role and you need"
        ),
    ),
    (
        r"driver version is insufficient|forward compatibility was attempted"
        r"|initialization failure with error: (35|803|804)\b"
        r"|compatibility mode is UNAVAILABLE|nvidia-smi",
        (
            "the GPU or its driver cannot run the image; "
            "SageMaker does not let you choose the driver of a job"
        ),
        (
            "use --job {other_kind}, whose hosts may have another driver, or build on an EC2 "
            "instance with the same GPU"
        ),
    ),
    (
        r"expected a GPU of compute capability",
        "the instance has another GPU than AWS publishes",
        "report this with the line of the GPU, and set --build-on to another type",
    ),
    (
        r"the image has no trtexec",
        "the image does not contain trtexec",
        "use AWS's Triton image, or build an image from nvcr.io/nvidia/tritonserver that has it",
    ),
    (
        r"Unknown option",
        "the TensorRT of the image does not have an option",
        "set --tensorrt to the version in the first line of the log, and leave the option out",
    ),
    (
        r"Static model does not take explicit shapes",
        "all dims of the model are fixed, but shapes were given",
        "compile without --input and with --max-batch-size 0",
    ),
    (
        r"No importer registered for op|UNSUPPORTED_NODE|Plugin not found"
        r"|unsupported operator|Unsupported operator",
        "TensorRT does not support an operator of the model",
        (
            "export the model with another operator set, replace the operator, or serve the ONNX "
            "file with ONNX Runtime"
        ),
    ),
    (
        r"OutOfMemory|out of memory|Cuda Runtime \(out of memory\)",
        "the GPU has too little memory for the build",
        "set --workspace to fewer MiB, lower the largest shapes, or use a GPU with more memory",
    ),
    (
        r"trtexec was killed|OutOfMemoryError|exit code 137",
        "the instance has too little main memory",
        "set --build-on to a larger size with the same GPU",
    ),
    (
        r"MaxRuntimeExceeded|maximum runtime|MaxRuntimeInSeconds",
        "the time limit has ended the job",
        "raise --max-seconds, or lower --optimization-level",
    ),
    (
        r"No such file or directory.{0,80}nvidia_entrypoint"
        r"|nvidia_entrypoint.{0,80}(no such file|not found)",
        (
            "the image has no /opt/nvidia/nvidia_entrypoint.sh, "
            "so it is not built from an image of NVIDIA"
        ),
        "build your image from nvcr.io/nvidia/tritonserver",
    ),
)


def explain_failure(texts: Iterable[str], request: JobRequest) -> str:
    """Return cause and fix of a failure, or where to look if it is not known.

    ``texts`` are what SageMaker, the script and the log say, the most specific first.
    """
    values = {
        "instance": request.build.gpu.name,
        "kind": request.kind,
        "other_kind": "training" if request.kind == "processing" else "processing",
        "region": request.settings.region,
    }
    for text in texts:
        for pattern, cause, fix in _FAILURES:
            if re.search(pattern, text):
                return f"{cause}; {fix}".format(**values)
    return (
        f"the cause is not known; read the log group {request.log_group}, streams {request.name}/"
    )
