"""Runs the image of a template in a container of docker or podman."""
