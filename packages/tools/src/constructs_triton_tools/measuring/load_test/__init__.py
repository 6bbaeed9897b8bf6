"""Measures an endpoint with an open loop of requests, and writes the CSV file that ``planning``
reads.

Requests are due at their own times, whether the endpoint answers or not, and each latency counts
**from when its request was due**. A test whose users wait for each answer (a closed loop) sends
less to a slow endpoint, and does not see the requests that were never sent.
Of streams, a closed loop is offered too: it keeps a number of them open, which is what an instance
is sized by. Needs the extra ``load``.
"""
