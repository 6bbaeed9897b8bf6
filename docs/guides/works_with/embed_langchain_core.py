"""Print the text that is nearest to a question: python embed_langchain_core.py "How do I ...?"."""

from __future__ import annotations

import sys

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from constructs_triton_client import TritonClient


class TritonEmbeddings(Embeddings):
    """Embeds texts with an endpoint that has the tensors `text` and `embedding`."""

    def __init__(self, endpoint_name: str) -> None:
        self.client = TritonClient.for_endpoint(endpoint_name)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.client.infer({"text": np.array(texts, object)[:, None]})[
            "embedding"
        ].tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


store = InMemoryVectorStore(TritonEmbeddings("embeddings"))
store.add_texts(
    [
        "I cannot log in to my account.",
        "How do I cook my rice?",
        "A kitten rests on a rug.",
    ]
)
for document, score in store.similarity_search_with_score(sys.argv[1], k=3):
    print(f"{score:.3f} {document.page_content}")
