"""Stand-ins: CPU replacements for Triton backends that the local server does not have."""
