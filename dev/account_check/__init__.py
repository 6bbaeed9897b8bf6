"""Asks an AWS account what neither the documentation nor a test can show.

``make account-check`` deploys five small stacks one after the other, reads what SageMaker did,
prints a table for ``dev/project/not_settled.md``, and destroys each stack. It costs money: an
estimate is printed first.
"""
