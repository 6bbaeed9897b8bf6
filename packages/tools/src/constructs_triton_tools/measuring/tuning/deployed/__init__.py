"""Runs the search of ``tune`` on instances of SageMaker, in stacks that end by themselves."""
