"""CloudFormation: templates, the order of resources, operations on stacks, rollbacks,
and its API.
"""
