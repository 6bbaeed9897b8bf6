"""What AWS and NVIDIA publish, as data: a JSON file with its sources beside each typed look-up.

``images``, ``instance_types``, ``inference_ami``, ``environment`` and ``limits`` answer questions;
``compatibility`` turns contradictions among the answers into findings; ``target`` is what a model repository
is checked for. Nothing here imports CDK.
"""
