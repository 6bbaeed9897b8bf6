"""Does it run, how fast, what does it cost, what is it doing?

Local runs, measuring, planning, operations.
"""

from constructs_triton_core import same_version

__version__ = same_version("constructs-triton", "0.1.0.dev0")
