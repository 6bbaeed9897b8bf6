"""Print the text that is nearest to a question:
python embed_langchain.py "How do I reset my password?".
"""

from __future__ import annotations

import json
import sys
from typing import Any

import boto3
from langchain_community.embeddings import SagemakerEndpointEmbeddings
from langchain_community.embeddings.sagemaker_endpoint import (
    EmbeddingsContentHandler,
)
from langchain_core.vectorstores import InMemoryVectorStore


class TensorHandler(EmbeddingsContentHandler):
    """The endpoint's tensors: `text` in, `embedding` out."""

    content_type = accepts = "application/json"

    def transform_input(
        self, prompt: list[str], model_kwargs: dict[str, Any]
    ) -> bytes:
        tensor = {
            "name": "text",
            "datatype": "BYTES",
            "shape": [len(prompt), 1],
            "data": prompt,
        }
        return json.dumps({"inputs": [tensor], **model_kwargs}).encode()

    def transform_output(self, output: Any) -> list[list[float]]:
        (tensor,) = json.loads(output.read())["outputs"]
        size = tensor["shape"][1]
        return [
            tensor["data"][start : start + size]
            for start in range(0, len(tensor["data"]), size)
        ]


embeddings = SagemakerEndpointEmbeddings(
    client=boto3.client("sagemaker-runtime"),
    endpoint_name="embeddings",
    content_handler=TensorHandler(),
)
store = InMemoryVectorStore(embeddings)
store.add_texts(
    [
        "I cannot log in to my account.",
        "How do I cook my rice?",
        "A kitten rests on a rug.",
    ]
)
for document, score in store.similarity_search_with_score(sys.argv[1], k=3):
    print(f"{score:.3f} {document.page_content}")
