# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .account import SimulatedAccount as SimulatedAccount
from .behaviour import Behaviour as Behaviour
from .stacks.stack import Stack as Stack
from .updates.rehearsing import rehearse as rehearse
from .updates.report import Problem as Problem
from .updates.report import Rehearsal as Rehearsal
