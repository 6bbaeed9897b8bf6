"""Calls to the simulated services, checked against botocore's shapes."""
