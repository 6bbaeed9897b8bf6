"""Where the definition of a local endpoint comes from: a synthesized template,
a deployed stack, a folder.
"""
