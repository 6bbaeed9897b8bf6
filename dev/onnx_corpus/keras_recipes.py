"""Models of Keras and TensorFlow as tf2onnx writes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import layers

OPSETS = (9, 11, 13, 15, 18)


def _even(model: Any) -> Any:
    """Set weights that compress well."""
    model.set_weights(
        [
            (np.arange(each.size) % 16 / 64 + 0.01).reshape(each.shape)
            for each in model.get_weights()
        ]
    )
    return model


def _dense(width: int) -> Any:
    return _even(
        keras.Sequential([layers.Input((width,)), layers.Dense(width, "relu"), layers.Dense(3)])
    )


def _images(width: int) -> Any:
    found = [
        layers.Input((16, 16, 3)),
        layers.Conv2D(width, 3, padding="same"),
        layers.BatchNormalization(),
        layers.Conv2D(width, 3, strides=2, activation="relu"),
        layers.UpSampling2D(2),
        layers.GlobalAveragePooling2D(),
        layers.Dense(3, "softmax"),
    ]
    return _even(keras.Sequential(found))


def _texts(width: int) -> Any:
    found = [layers.Input((6,), dtype="int32"), layers.Embedding(width * 2, width), layers.LSTM(8)]
    return _even(keras.Sequential([*found, layers.Dense(1)]))


def _loop(width: int) -> Any:
    weights = tf.Variable(
        (np.arange(width * width) % 16 / 64).reshape(width, width), dtype=tf.float32
    )

    def run(x: Any) -> Any:
        steps = tf.cast(tf.reduce_sum(x), tf.int32)
        _, found = tf.while_loop(
            lambda step, _: step < steps,
            lambda step, value: (
                step + 1,
                tf.cond(step > 1, lambda: value @ weights, lambda: value + 1.0),
            ),
            (tf.constant(0), x),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, width])),
        )
        return found

    return tf.function(run, input_signature=[tf.TensorSpec([None, width], tf.float32, name="x")])


def _converted(model: Any, opset: int) -> Any:
    if not isinstance(model, keras.Model):
        return tf2onnx.convert.from_function(model, model.input_signature, opset=opset)[0]
    shape = (None, *model.input_shape[1:])
    signature = [tf.TensorSpec(shape, model.inputs[0].dtype, name="x")]
    function = tf.function(lambda x: model(x, training=False), input_signature=signature)
    return tf2onnx.convert.from_function(function, signature, opset=opset)[0]


def _exports(is_large: bool) -> Iterator[tuple[str, Callable[[], Any], int]]:
    width = 300 if is_large else 6
    for opset in OPSETS:
        yield f"keras_opset_{opset}", lambda: _dense(width), opset
    yield "keras_images", lambda: _images(96 if is_large else 4), 15
    yield "keras_texts", lambda: _texts(width), 15
    yield "tensorflow_loop", lambda: _loop(width), 15


def main(folder: Path) -> None:
    """Write each model to a folder of its own."""
    for size in ("small", "large"):
        for name, make, opset in _exports(size == "large"):
            try:
                content = _converted(make(), opset).SerializeToString()
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                continue
            (folder / f"{name}_{size}").mkdir(parents=True)
            (folder / f"{name}_{size}" / "model.onnx").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
