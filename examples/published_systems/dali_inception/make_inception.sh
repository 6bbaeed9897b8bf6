#!/bin/sh
# Writes Inception v3 and its labels: article/inception_graphdef/1/model.graphdef, the label file beside
# its config.pbtxt, and model_files/model.onnx.
#
# Not run by the tests: it needs curl, the network and `pip install tensorflow tf2onnx`.
set -eu
cd "$(dirname "$0")"
mkdir -p model_files
curl -fsSL https://storage.googleapis.com/download.tensorflow.org/models/inception_v3_2016_08_28_frozen.pb.tar.gz |
    tar -xz -C model_files
cp model_files/inception_v3_2016_08_28_frozen.pb article/inception_graphdef/1/model.graphdef
cp model_files/imagenet_slim_labels.txt article/inception_graphdef/inception_labels.txt
python3 -m tf2onnx.convert --graphdef model_files/inception_v3_2016_08_28_frozen.pb \
    --inputs 'input:0[-1,299,299,3]' --outputs 'InceptionV3/Predictions/Softmax:0' \
    --rename-inputs image --rename-outputs probabilities --opset 17 --output model_files/model.onnx
