"""Decodes pictures, fits each into the input of the network, and says where it is there.

``model new --task`` has written this file. It needs the package pillow. All settings are the
parameters in config.pbtxt:

fit
    ``letterbox`` keeps the proportions and pads in the middle, ``stretch`` changes them,
    ``crop`` keeps the middle.
padding
    The value of the padding, from 0 to 255.
scale, mean, std
    A value of a pixel becomes ``(value * scale - mean) / std``; mean and std are three numbers.
channels
    ``RGB`` or ``BGR``.
layout
    ``NCHW`` or ``NHWC``.
most_pixels
    A picture with more pixels is refused, before it is decoded.
"""

import io
import json

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, ImageOps


class TritonPythonModel:
    """Triton creates one object of this class for each instance of the model."""

    def initialize(self, args):
        """Read the settings, and the size of the network's input."""
        config = json.loads(args["model_config"])
        parameters = config["parameters"]
        settings = {key: parameters[key]["string_value"] for key in parameters}
        self.fit = settings["fit"]
        self.padding = int(settings["padding"])
        self.scale = float(settings["scale"])
        self.mean = np.array(settings["mean"].split(), "float32")
        self.std = np.array(settings["std"].split(), "float32")
        self.channels = settings["channels"]
        self.layout = settings["layout"]
        self.most_pixels = int(settings["most_pixels"])

        self.is_batched = config["max_batch_size"] > 0
        self.outputs = [output["name"] for output in config["output"]]
        pixels = pb_utils.get_output_config_by_name(config, "pixels")
        self.data_type = pb_utils.triton_string_to_numpy(pixels["data_type"])
        sizes = [int(size) for size in pixels["dims"]][-3:]
        if self.layout == "NCHW":
            self.height, self.width = sizes[1:]
        else:
            self.height, self.width = sizes[:2]

    def execute(self, requests):
        """Return one response for each request, in the same order."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Decode the pictures of one request."""
        pictures = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
        pixels = []
        placements = []
        for number, content in enumerate(pictures.reshape(-1)):
            try:
                picture = self.decode(content)
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
                message = f"image {number}: cannot be decoded: {error}; send a JPEG or PNG file"
                return pb_utils.InferenceResponse(error=refusal(message))
            fitted, placement = self.fitted(picture)
            pixels.append(self.normalized(fitted))
            placements.append(placement)

        placements = np.array(placements, "float32")
        values = {
            "pixels": np.stack(pixels),
            "placement": placements if self.is_batched else placements[0],
            "size": placements[:, 4:].astype("int64"),
        }
        tensors = [pb_utils.Tensor(name, values[name]) for name in self.outputs]
        return pb_utils.InferenceResponse(tensors)

    def decode(self, content):
        """Return the picture, turned as its EXIF orientation says, as viewers show it."""
        picture = Image.open(io.BytesIO(content))
        if picture.width * picture.height > self.most_pixels:
            size = f"{picture.width} x {picture.height}"
            raise ValueError(f"it has {size} pixels, more than {self.most_pixels}")
        return with_8_bits(ImageOps.exif_transpose(picture)).convert("RGB")

    def fitted(self, picture):
        """Return the picture in the network's size, and its placement.

        The placement has the horizontal and the vertical scale, the left and the top margin, and
        the width and the height of the picture: a point (x, y) of the picture is at
        (x * scale + left, y * scale + top) of the network's input.
        """
        if self.fit == "stretch":
            shown_width, shown_height = self.width, self.height
        else:
            choose = min if self.fit == "letterbox" else max
            scale = choose(self.width / picture.width, self.height / picture.height)
            shown_width = max(1, round(picture.width * scale))
            shown_height = max(1, round(picture.height * scale))
        left = (self.width - shown_width) // 2
        top = (self.height - shown_height) // 2

        canvas = Image.new("RGB", (self.width, self.height), (self.padding,) * 3)
        canvas.paste(resized(picture, shown_width, shown_height), (left, top))
        placement = [
            shown_width / picture.width,
            shown_height / picture.height,
            left,
            top,
            picture.width,
            picture.height,
        ]
        return canvas, placement

    def normalized(self, picture):
        """Return the numbers that the network reads."""
        values = np.asarray(picture)
        if self.channels == "BGR":
            values = values[:, :, ::-1]
        values = (values.astype("float32") * self.scale - self.mean) / self.std
        if self.layout == "NCHW":
            values = values.transpose(2, 0, 1)
        return np.ascontiguousarray(values, self.data_type)


def refusal(message):
    """Return an error of the caller; before Triton 23.09, an error has no code."""
    code = getattr(pb_utils.TritonError, "INVALID_ARG", None)
    return pb_utils.TritonError(message) if code is None else pb_utils.TritonError(message, code)


def with_8_bits(picture):
    """Return a picture with 16 bits a value with 8; ``convert`` would cut larger values off."""
    if picture.mode == "F":
        raise ValueError("its values are floating-point numbers")
    if not picture.mode.startswith("I"):
        return picture
    values = np.asarray(picture)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError("its values have more than 16 bits")
    return Image.fromarray((values // 257).astype("uint8"))


def resized(picture, width, height):
    """Scale a picture as OpenCV's INTER_LINEAR does, with which most detectors are trained.

    ``Image.resize`` would average more pixels if the picture becomes smaller.
    """
    if (width, height) == picture.size:
        return picture
    matrix = (picture.width / width, 0, 0, 0, picture.height / height, 0)
    return picture.transform(
        (width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR
    )
