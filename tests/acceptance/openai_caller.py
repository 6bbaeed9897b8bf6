"""Calls a chat with OpenAI's package. Runs in an environment of its own.

python openai_caller.py BASE_URL KEY: prints the answers of a stream and of a whole response.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from openai import OpenAI

REQUEST: Any = {"model": "", "messages": [{"role": "user", "content": "grüß mich"}]}


def main(base_url: str, key: str) -> None:
    """Print the answers as one JSON object.

    The key is a function, which is called for each request.
    """
    chats = OpenAI(base_url=base_url, api_key=lambda: key, max_retries=0).chat.completions
    chunks = list(chats.create(**REQUEST, stream=True, stream_options={"include_usage": True}))
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    answers = {
        "stream": "".join(texts),
        "tokens": chunks[-1].usage.completion_tokens,
        "whole": chats.create(**REQUEST).choices[0].message.content,
    }
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
