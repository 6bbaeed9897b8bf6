# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .account import SimulatedAccount as SimulatedAccount
from .behaviour import Behaviour as Behaviour
from .updates.rehearsing import rehearse as rehearse
