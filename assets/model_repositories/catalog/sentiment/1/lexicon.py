"""Score a text by the words it holds, read against a lexicon written by hand."""

import json
import re
from pathlib import Path
from typing import NamedTuple

# How many words back a negation or a strengthening word still acts.
REACH = 3
# A negated word counts against its sign, but weaker: "not great" is milder than "bad".
NEGATION = -0.7
# Words of one text at which half of the way to -1 or 1 is reached, in points of the lexicon.
HALF_WAY = 3.0
# Scores nearer to 0 than this are called neutral.
NEUTRAL = 0.15
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


class Lexicon(NamedTuple):
    """Points of words, words that turn the next ones around, and words that strengthen them."""

    words: dict[str, float]
    negations: frozenset[str]
    strengths: dict[str, float]


def load_lexicon(path: Path) -> Lexicon:
    """Read a lexicon from its JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Lexicon(content["words"], frozenset(content["negations"]), content["strengths"])


def sentiment(lexicon: Lexicon, text: str) -> float:
    """Return how kind the text sounds, between -1 and 1; 0 when no word of it is known."""
    words = _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    points = sum(_points(lexicon, words, position) for position in range(len(words)))
    return points / (HALF_WAY + abs(points))


def _points(lexicon: Lexicon, words: list[str], position: int) -> float:
    points = lexicon.words.get(words[position], 0.0)
    for before in words[max(0, position - REACH) : position]:
        points *= lexicon.strengths.get(before, 1.0)
        points *= NEGATION if before in lexicon.negations else 1.0
    return points


def label_of(score: float) -> str:
    """Return "positive", "negative" or "neutral"."""
    if abs(score) < NEUTRAL:
        return "neutral"
    return "positive" if score > 0 else "negative"
