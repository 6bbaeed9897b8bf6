"""``constructs-triton rehearse``: rehearse an update in a simulated AWS account."""
