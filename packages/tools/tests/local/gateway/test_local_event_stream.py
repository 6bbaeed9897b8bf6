"""Event stream frames, against botocore's decoder."""

from __future__ import annotations

import json

from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from constructs_triton_tools.local.gateway.relay import model_stream_error, payload_part


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 64))
def test_botocore_reads_the_parts_back(payloads: list[bytes], step: int) -> None:
    """However the frames are cut in transit, each payload arrives whole, as a PayloadPart."""
    stream = b"".join(payload_part(payload) for payload in payloads)
    buffer = EventStreamBuffer()
    events = []
    for start in range(0, len(stream), step):
        buffer.add_data(stream[start : start + step])
        events += list(buffer)
    assert [event.payload for event in events] == payloads
    assert all(
        event.to_response_dict()["headers"][":event-type"] == "PayloadPart" for event in events
    )


def test_botocore_reads_an_error_back() -> None:
    """The exception has the name, the code and the message of the service model."""
    buffer = EventStreamBuffer()
    buffer.add_data(model_stream_error("StreamBroken", "the server ended"))
    (event,) = buffer
    response = event.to_response_dict()
    assert response["status_code"] == 400
    assert response["headers"][":exception-type"] == "ModelStreamError"
    assert json.loads(event.payload) == {"Message": "the server ended", "ErrorCode": "StreamBroken"}
