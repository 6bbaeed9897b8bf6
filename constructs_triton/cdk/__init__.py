"""The constructs: a checked model repository and the SageMaker endpoints that serve it.

The only part of the package that imports ``aws_cdk``. The names of the constructs and their options
are those of ``constructs_triton``; this package has what concerns a whole app.
"""

from constructs_triton.cdk.custom_resources.deploy_time_functions import (
    DeployTimeFunctionOptions,
    DeployTimeFunctions,
)
from constructs_triton.cdk.permissions.nag_findings import acknowledge_nag_findings
from constructs_triton_core.keywords import check_names

__all__ = ["DeployTimeFunctionOptions", "DeployTimeFunctions", "acknowledge_nag_findings"]

check_names(globals(), __all__)
