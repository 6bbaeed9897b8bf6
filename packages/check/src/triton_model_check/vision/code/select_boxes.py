"""Turns the output of a detector into boxes in the pixels of the picture.

``model new --task detect`` has written this file. It needs only NumPy. All settings are the
parameters in config.pbtxt:

form
    What the network's output means: the function of this name below reads it.
score_threshold
    A box with a lower score is left out.
iou_threshold
    Of two boxes of one class that overlap more (intersection over union), the one with the lower
    score is left out. 1 keeps all.

The labels of the classes are the lines of labels.txt beside this file. If a class has no line, its
label is its number.
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Triton creates one object of this class for each instance of the model."""

    def initialize(self, args):
        """Read the settings and the labels."""
        config = json.loads(args["model_config"])
        parameters = config["parameters"]
        settings = {key: parameters[key]["string_value"] for key in parameters}
        self.read = FORMS[settings["form"]]
        self.score_threshold = float(settings["score_threshold"])
        self.iou_threshold = float(settings["iou_threshold"])
        self.network_size = [float(size) for size in settings["network_size"].split()]

        self.is_batched = config["max_batch_size"] > 0
        boxes = pb_utils.get_output_config_by_name(config, "boxes")
        self.most = int(boxes["dims"][-2])
        self.outputs = [each["name"] for each in config["output"]]
        masks = pb_utils.get_output_config_by_name(config, "masks")
        self.mask_size = int(masks["dims"][-1]) if masks else 0
        self.inputs = [each["name"] for each in config["input"] if each["name"] != "placement"]
        folder = Path(args["model_repository"]) / args["model_version"]
        labels = folder / "labels.txt"
        self.labels = labels.read_text("utf-8").splitlines() if labels.is_file() else []

    def execute(self, requests):
        """Return one response for each request, in the same order."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Select the boxes of each picture of one request."""
        arrays = [values_of(request, name).astype("float32") for name in self.inputs]
        placements = values_of(request, "placement").reshape(-1, 6)
        found = [
            self.detections([array[number] for array in arrays], placement)
            for number, placement in enumerate(placements)
        ]
        tensors = []
        for name in self.outputs:
            values = np.stack([outputs[name] for outputs in found])
            tensors.append(pb_utils.Tensor(name, values if self.is_batched else values[0]))
        return pb_utils.InferenceResponse(tensors)

    def detections(self, arrays, placement):
        """Return the outputs for one picture, padded to the largest number of boxes."""
        boxes, scores, classes, *parts = self.read(*arrays)
        if self.read in NORMALIZED:
            boxes = boxes * np.array(self.network_size * 2, "float32")
        wanted = scores >= self.score_threshold
        boxes, scores, classes = boxes[wanted], scores[wanted], classes[wanted]
        kept = suppress(boxes, scores, classes, self.iou_threshold)[: self.most]
        boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        if self.read is not decoded:  # which has the pixels of the picture already
            boxes = in_picture(boxes, placement)

        count = len(kept)
        labels = [self.label(number) for number in classes]
        masks = {}
        if parts:
            weights, prototypes = parts
            weights = weights[wanted][kept]
            places = self.in_network(boxes, placement)
            found = masks_in_boxes(places, weights, prototypes, self.mask_size)
            masks["masks"] = padded(found, self.most, 0)
        return masks | {
            "num_detections": np.array([count], "int32"),
            "boxes": padded(boxes.astype("float32"), self.most, 0),
            "scores": padded(scores.astype("float32"), self.most, 0),
            "classes": padded(classes.astype("int32"), self.most, -1),
            "labels": padded(np.array(labels, "object"), self.most, b""),
        }

    def in_network(self, boxes, placement):
        """Turn pixels of the picture into parts of the network's input, from 0 to 1."""
        scale_x, scale_y, left, top = placement[:4]
        pixels = boxes * [scale_x, scale_y, scale_x, scale_y] + [left, top, left, top]
        return pixels / (self.network_size * 2)

    def label(self, number):
        """Return the label of a class as bytes."""
        known = 0 <= number < len(self.labels)
        return (self.labels[number] if known else str(number)).encode()


# --- what the outputs mean: each function returns boxes x1, y1, x2, y2 with scores and classes ----


def yolov8(predictions):
    """Read a column for each place: centre, size and the score of each class.

    YOLOv8, v9, v11 and v12 in pixels of the network's input.
    """
    rows = predictions.T
    return best_classes(corners(rows[:, :4]), rows[:, 4:])


def yolov8_rows(predictions):
    """Read a row for each place: a YOLOv8 or one of its successors that was transposed."""
    return yolov8(predictions.T)


def yolov8_segment(predictions, prototypes):
    """Read what yolov8 reads, then the weight of each prototype for the mask of the place."""
    rows = predictions.T
    weights = rows[:, -len(prototypes) :]
    boxes, scores, classes = best_classes(corners(rows[:, :4]), rows[:, 4 : -len(prototypes)])
    return boxes, scores, classes, weights, prototypes


def yolov5(predictions):
    """Read a row for each place: centre, size, the score of any object and that of each class.

    YOLOv5 and v7 in pixels of the network's input. A score is the product of both.
    """
    return best_classes(corners(predictions[:, :4]), predictions[:, 4:5] * predictions[:, 5:])


def end_to_end(predictions):
    """Read a row for each box: corners, score and class.

    YOLOv10, and exports with nms=True, in pixels of the network's input.
    """
    return predictions[:, :4], predictions[:, 4], predictions[:, 5].astype(int)


def rtdetr(predictions):
    """Read a row for each query: centre and size as parts of the input, the score of each class.

    RT-DETR of older versions of Ultralytics.
    """
    return best_classes(corners(predictions[:, :4]), predictions[:, 4:])


def rtdetr_topk(predictions):
    """Read a row for each box: centre and size as parts of the input, score and class.

    RT-DETR of newer versions of Ultralytics.
    """
    return corners(predictions[:, :4]), predictions[:, 4], predictions[:, 5].astype(int)


def queries(logits, boxes):
    """Read a box for each query, and a logit of each class (RT-DETR of transformers, RF-DETR)."""
    return best_classes(corners(boxes), 1 / (1 + np.exp(-logits)))


def decoded(classes, boxes, scores):
    """Read boxes in pixels of the picture (RT-DETR, D-FINE and DEIM with orig_target_sizes)."""
    return boxes, scores, classes.astype(int)


FORMS = {
    form.__name__: form
    for form in (
        yolov8,
        yolov8_rows,
        yolov8_segment,
        yolov5,
        end_to_end,
        rtdetr,
        rtdetr_topk,
        queries,
        decoded,
    )
}
#: Their boxes are parts of the network's input, from 0 to 1.
NORMALIZED = (rtdetr, rtdetr_topk, queries)


# --- steps ----------------------------------------------------------------------------------------


def values_of(request, name):
    """Return an input of the request as an array."""
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()


def corners(boxes):
    """Turn centre and size into two corners."""
    half = boxes[:, 2:4] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def best_classes(boxes, scores):
    """Keep the best class of each box."""
    classes = scores.argmax(axis=1)
    return boxes, scores[np.arange(len(scores)), classes], classes


def suppress(boxes, scores, classes, iou_threshold):
    """Return the numbers of the boxes that no better box of their class covers, best first."""
    order = np.argsort(-scores, kind="stable")
    if iou_threshold >= 1:
        return order
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while len(order):
        best, others = order[0], order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[others, :2])
        high = np.minimum(boxes[best, 2:], boxes[others, 2:])
        sides = np.maximum(high - low, 0)
        shared = sides[:, 0] * sides[:, 1]
        iou = shared / np.maximum(areas[best] + areas[others] - shared, 1e-9)
        order = others[(iou <= iou_threshold) | (classes[others] != classes[best])]
    return np.array(kept, int)


def masks_in_boxes(boxes, weights, prototypes, size):
    """Return a mask of each box, of size x size points from its top left corner: 1 on the object.

    ``boxes`` are parts of the network's input, from 0 to 1. The mask is the weighted sum of the
    prototypes, read between their pixels, where it is above 0.
    """
    steps = (np.arange(size) + 0.5) / size
    masks = np.zeros((len(boxes), size, size), "uint8")
    for number, (x1, y1, x2, y2) in enumerate(boxes):
        mask = np.tensordot(weights[number], prototypes, 1)
        mask = between(mask, (y1 + steps * (y2 - y1)) * mask.shape[0] - 0.5)
        mask = between(mask.T, (x1 + steps * (x2 - x1)) * mask.shape[1] - 0.5).T
        masks[number] = mask > 0
    return masks


def between(rows, places):
    """Return the values of rows at places between them, and at the edge beyond it."""
    places = np.clip(places, 0, len(rows) - 1)
    low = np.minimum(places.astype(int), max(len(rows) - 2, 0))
    part = (places - low)[:, None]
    high = np.minimum(low + 1, len(rows) - 1)
    return rows[low] * (1 - part) + rows[high] * part


def in_picture(boxes, placement):
    """Turn pixels of the network's input into those of the picture, and cut at its edges."""
    scale_x, scale_y, left, top, width, height = placement
    boxes = (boxes - [left, top, left, top]) / [scale_x, scale_y, scale_x, scale_y]
    return np.clip(boxes, 0, [width, height, width, height])


def padded(values, length, value):
    """Fill up to a length, so that pictures with different numbers of boxes share a batch."""
    result = np.full((length, *values.shape[1:]), value, values.dtype)
    result[: len(values)] = values
    return result
