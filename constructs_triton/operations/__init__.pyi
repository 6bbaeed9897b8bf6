# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .cloudwatch_logs import LogLine as LogLine
from .cloudwatch_logs import read_logs as read_logs
from .component_state import ComponentState as ComponentState
from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import Message as Message
from .diagnosis import diagnose as diagnose
from .diagnosis import diagnose_log as diagnose_log
from .endpoint_diagnosis import EndpointDiagnosis as EndpointDiagnosis
from .endpoint_diagnosis import diagnose_endpoint as diagnose_endpoint
from .library_values import LibraryModel as LibraryModel
from .model_library import LibraryChange as LibraryChange
from .model_library import ModelLibrary as ModelLibrary
from .status import EndpointState as EndpointState
from .status import ScalingState as ScalingState
from .status import VariantState as VariantState
from .status import endpoints_of_stack as endpoints_of_stack
from .status import read_status as read_status
from .verification import VerifiedRequest as VerifiedRequest
from .verification import verify_requests as verify_requests
from .warming import WarmedModel as WarmedModel
from .warming import expected_instances as expected_instances
from .warming import warm_model as warm_model
