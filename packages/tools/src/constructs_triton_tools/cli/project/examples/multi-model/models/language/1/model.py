"""Recognizes the language of a review by its trigrams, the sequences of three characters."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

# The code of ISO 639-2 for a text whose language is not known.
UNDETERMINED = "und"


class TritonPythonModel:
    """Returns the language whose samples are most similar to a review, and their similarity."""

    def initialize(self, args):
        """Count the trigrams of the samples once."""
        file = Path(args["model_repository"], args["model_version"], "samples.json")
        samples = json.loads(file.read_text(encoding="utf-8"))
        self.languages = list(samples)
        counts = [trigrams(" ".join(reviews)) for reviews in samples.values()]
        self.known = sorted(set().union(*counts))
        self.profiles = np.stack([self.profile(count) for count in counts])

    def execute(self, requests):
        """Return one response for each request."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Recognize the languages of the reviews of one request."""
        reviews = pb_utils.get_input_tensor_by_name(request, "review").as_numpy()
        texts = [review.decode("utf-8", errors="replace") for review in reviews.ravel()]
        similarities = np.stack([self.profile(trigrams(text)) for text in texts]) @ self.profiles.T
        best = similarities.max(axis=1)
        languages = [self.languages[index] for index in similarities.argmax(axis=1)]
        names = np.where(best > 0, languages, UNDETERMINED).astype(np.bytes_).astype(np.object_)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("language", names[:, None]),
                pb_utils.Tensor("similarity", best[:, None].astype(np.float32)),
            ]
        )

    def profile(self, count):
        """Return the frequencies of the known trigrams as a vector of length 1."""
        vector = np.array([count[trigram] for trigram in self.known], np.float32)
        return vector / max(np.linalg.norm(vector), 1)


def trigrams(text):
    """Count the trigrams of a text. Everything but letters separates words."""
    words = " ".join(re.findall(r"[^\W\d_]+", text.lower()))
    padded = f" {words} "
    return Counter(padded[start : start + 3] for start in range(len(padded) - 2))
