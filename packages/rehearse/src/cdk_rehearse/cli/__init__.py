"""``cdk-rehearse``: a program whose command ``rehearse`` is also ``constructs-triton rehearse``."""

from constructs_triton_core.program.program import Command, Program

_COMMANDS = {
    "rehearse": Command(f"{__name__}.command", "rehearse an update in a simulated AWS account"),
    "explain": Command("constructs_triton_core.program.explain", "explain the code of a problem"),
}
PROGRAM = Program("cdk-rehearse", "", "", {"": _COMMANDS}, default="rehearse")
main = PROGRAM.main
