"""Reads what ``cdk synth`` wrote: plain JSON, which needs neither the CDK nor Node,
nor a deployed stack.
"""
