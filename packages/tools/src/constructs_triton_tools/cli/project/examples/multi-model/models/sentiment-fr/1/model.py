"""Scores French reviews by their words. Replace it with your model."""

import json
import re
import unicodedata
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
        """Add the weights of the words. "ne" reverses those that follow it in its clause."""
        total = 0.0
        for clause in re.split(r"[.,;:!?]|\b(?:et|mais)\b", text.lower()):
            sign = 1
            # An apostrophe separates words: "n'est" is "n" and "est".
            for word in re.findall(r"[a-z]+", without_accents(clause)):
                if word in self.negations:
                    sign = -1
                total += sign * self.weight(word)
        return total

    def weight(self, word):
        """Return the weight of a word, or of its singular or masculine form."""
        for form in (word, word.removesuffix("s"), word.removesuffix("s").removesuffix("e")):
            if form in self.weights:
                return self.weights[form]
        return 0.0


def without_accents(text):
    """Return a text whose letters have no accents: "déçu" becomes "decu"."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
