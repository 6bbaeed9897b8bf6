"""Scores German reviews by their words. Replace it with your model."""

import json
import re
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns a score from -1 (bad) to 1 (good) for each review."""

    def initialize(self, args):
        """Read the words once."""
        file = Path(args["model_repository"], args["model_version"], "words.json")
        words = json.loads(file.read_text(encoding="utf-8"))
        self.weights = words["weights"]
        self.negations = set(words["negations"])

    def execute(self, requests):
        """Return one response for each request."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Score the reviews of one request."""
        reviews = pb_utils.get_input_tensor_by_name(request, "review").as_numpy()
        texts = [review.decode("utf-8", errors="replace") for review in reviews.ravel()]
        sums = np.array([self.total(text) for text in texts], np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("score", np.tanh(sums)[:, None])])

    def total(self, text):
        """Add the weights of the words. A negation reverses those of its clause.

        It may be the last word of the clause: "Die Farbe gefällt mir nicht."
        """
        total = 0.0
        for clause in re.split(r"[.,;:!?]|\b(?:und|aber)\b", text.lower()):
            words = [self.stem(word) for word in re.findall(r"\w+", clause)]
            sign = -1 if self.negations.intersection(words) else 1
            total += sign * sum(self.weights.get(word, 0) for word in words)
        return total

    def stem(self, word):
        """Return a word without umlauts. A known adjective loses its ending too."""
        for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
            word = word.replace(umlaut, letters)
        stem = re.sub(r"(e|em|en|er|es)$", "", word)
        return stem if stem in self.weights or stem in self.negations else word
