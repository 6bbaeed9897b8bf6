# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .captured_requests import read_capture as read_capture
from .cloudwatch_logs import read_logs as read_logs
from .diagnosis import diagnose_log as diagnose_log
from .endpoint_diagnosis import diagnose_endpoint as diagnose_endpoint
from .model_library import ModelLibrary as ModelLibrary
from .stack_endpoints import endpoints_of_stack as endpoints_of_stack
from .status import read_status as read_status
from .verification import verify_requests as verify_requests
from .warming import warm_model as warm_model
