"""Make the tokenizer and the weights of the example from `text.txt`: `python train.py`,
in a second.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

REPOSITORY = Path(__file__).parents[2] / "assets" / "model_repositories" / "story"
VOCABULARY = 400
# How much an unseen pair of tokens counts, in comparison with a pair that is in the text once.
UNSEEN = 0.01


def train_tokenizer(text: str) -> Tokenizer:
    """Return a byte-level BPE tokenizer of the text. Token 0 is the beginning of a text."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    alphabet = sorted(ByteLevel.alphabet())
    trainer = BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<begin>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def log_counts(ids: list[int], distance: int) -> np.ndarray:
    """Return the logarithm of how often each token follows another one at this distance."""
    counts = np.full((VOCABULARY, VOCABULARY), UNSEEN, np.float32)
    np.add.at(counts, (ids[:-distance], ids[distance:]), 1)
    return np.log(counts)


def main() -> None:
    """Write the files of both models."""
    text = Path(__file__).with_name("text.txt").read_text(encoding="utf-8")
    tokenizer = train_tokenizer(text)
    ids = [0, 0, *tokenizer.encode(text).ids]
    for model in ("decoder", "tokenizer"):
        tokenizer.save(str(REPOSITORY / model / "1" / "tokenizer.json"), pretty=False)
    weights = {"last": log_counts(ids, 1), "before": log_counts(ids, 2)}
    np.savez_compressed(REPOSITORY / "decoder" / "1" / "weights.npz", **weights)


if __name__ == "__main__":
    main()
