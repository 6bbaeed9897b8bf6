"""Endpoints, their fleets and their inference components, as SageMaker updates them."""
