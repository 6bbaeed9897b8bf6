"""Train a classifier of handwritten digits and write it as digits.onnx."""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

images, labels = load_digits(return_X_y=True)
images, test_images, labels, test_labels = train_test_split(
    images,
    labels,
    random_state=0,
)
strength = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
classifier = LogisticRegression(C=strength, max_iter=5000).fit(images, labels)

FLOAT = TensorProto.FLOAT
graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["pixels", "weights", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"]),
    ],
    "digits",
    [helper.make_tensor_value_info("pixels", FLOAT, ["batch", 64])],
    [helper.make_tensor_value_info("probabilities", FLOAT, ["batch", 10])],
    [
        numpy_helper.from_array(classifier.coef_.T.astype(np.float32), "weights"),
        numpy_helper.from_array(classifier.intercept_.astype(np.float32), "bias"),
    ],
)
opset = helper.make_opsetid("", 17)
save(helper.make_model(graph, opset_imports=[opset], ir_version=8), "digits.onnx")
score = classifier.score(test_images, test_labels)
print(f"digits.onnx: {score:.1%} of the test images are correct")
