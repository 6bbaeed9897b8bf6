"""Mutation testing of constructs_triton: changes the code at random and looks whether a test fails.

mutmut 3 takes no random sample and leaves out code outside functions, cosmic-ray starts every test command
afresh and does not select tests, and mutatest does not run on Python 3.11. So this project has its own
modules.
"""
