"""``cdk-rehearse``: a program with one command, which is also ``constructs-triton rehearse``."""

from constructs_triton_core.program.program import Command, Program

_COMMAND = Command(f"{__name__}.command", "rehearse an update in a simulated AWS account")
PROGRAM = Program("cdk-rehearse", "", "", {"": {"rehearse": _COMMAND}}, default="rehearse")
main = PROGRAM.main
