# The names of this package. Python imports each on first use, type checkers read this file.

__all__: list[str]

from .endpoint_assertion import assert_endpoint as assert_endpoint
from .rehearsal_assertion import assert_update_keeps_serving as assert_update_keeps_serving
from .rehearsal_assertion import rehearse as rehearse
from .replacement_assertion import assert_no_replacement as assert_no_replacement
from .response_assertion import assert_responses as assert_responses
from .scaling_assertion import assert_scales as assert_scales
from .snapshot_extension import TritonTemplateExtension as TritonTemplateExtension
from .stable_templates import stable_template as stable_template
