#!/bin/sh
# Writes model_files/model.plan from model_files/model.onnx.
#
# Not run by the tests: it needs Docker and a GPU of the kind that will serve the plan (a T4 for ml.g4dn).
# The release is that of the Triton image, since a plan fits only the TensorRT that built it. Without such a
# machine, `constructs-triton compile` does the same in a SageMaker job: see README.md.
set -eu
cd "$(dirname "$0")/model_files"
shapes() { echo "INPUT__0:$1x512,INPUT__1:$1x512"; }
trtexec() {
    docker run --rm --gpus all -v "$PWD:/models" "nvcr.io/nvidia/tensorrt:${RELEASE:-26.05}-py3" trtexec "$@"
}
# Without the option the plan would be in single precision.
if ! trtexec --help | grep -q -e --fp16; then
    echo "TensorRT 11 and later have no --fp16: convert model.onnx to half precision, and remove the option" >&2
    exit 1
fi
trtexec --onnx=/models/model.onnx --saveEngine=/models/model.plan --fp16 \
    --minShapes="$(shapes 1)" --optShapes="$(shapes 8)" --maxShapes="$(shapes 16)"
