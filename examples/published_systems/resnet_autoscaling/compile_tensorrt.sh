#!/bin/sh
# Writes model_files/model.plan from model_files/model.onnx.
#
# Not run by the tests: it needs Docker and a GPU of the kind that will serve the plan (a T4 for ml.g4dn).
# The release is that of the Triton image, since a plan fits only the TensorRT that built it.
set -eu
cd "$(dirname "$0")/model_files"
docker run --rm --gpus all -v "$PWD:/models" "nvcr.io/nvidia/tensorrt:${RELEASE:-26.05}-py3" \
    trtexec --onnx=/models/model.onnx --saveEngine=/models/model.plan --fp16 \
    --minShapes=input:1x3x224x224 --optShapes=input:16x3x224x224 --maxShapes=input:128x3x224x224
