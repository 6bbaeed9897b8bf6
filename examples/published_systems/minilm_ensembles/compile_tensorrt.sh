#!/bin/sh
# Compiles the encoder for the GPU at hand: sh compile_tensorrt.sh [TRITON_VERSION]
#
# Needs Docker and a GPU of the kind the endpoint will have (a T4 for ml.g4dn), so it is not part of the tests:
# an engine runs on the GPU and the TensorRT release that it was made for, and NVIDIA's containers of one
# month hold the same release. Without such a machine, `constructs-triton compile` does the same in a SageMaker
# job: see README.md.
set -eu

version=${1:-24.09}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)

python "$here/build_models.py" --onnx "$work/model.onnx"
shapes() { echo "input_ids:$1,attention_mask:$1"; }
trtexec() {
    docker run --rm --gpus all --volume "$work:/workspace" "nvcr.io/nvidia/tensorrt:$version-py3" trtexec "$@"
}
# Without the option the plan would be in single precision.
if ! trtexec --help | grep -q -e --fp16; then
    echo "TensorRT 11 and later have no --fp16: convert model.onnx to half precision, and remove the option" >&2
    exit 1
fi
trtexec --onnx=/workspace/model.onnx --saveEngine=/workspace/model.plan --fp16 \
    --minShapes="$(shapes 1x1)" --optShapes="$(shapes 16x128)" --maxShapes="$(shapes 64x256)"
mv "$work/model.plan" "$here/model.plan"
