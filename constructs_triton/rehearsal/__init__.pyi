# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .account import SimulatedAccount as SimulatedAccount
from .behaviour import Behaviour as Behaviour
from .updates.rehearsing import rehearse as rehearse
from .updates.report import Failure as Failure
from .updates.report import Instances as Instances
from .updates.report import Leftover as Leftover
from .updates.report import Operation as Operation
from .updates.report import Rehearsal as Rehearsal
from .updates.report import RehearsedStep as RehearsedStep
from .updates.simulation import simulate as simulate
