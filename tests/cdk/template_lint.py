"""cfn-lint with its rules loaded once, which takes as long as a small template.

It imports SymPy, and only some of the processes of a test run need it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any


def lint(template: Mapping[str, Any]) -> list[Any]:
    """Return what cfn-lint finds, without W3005:
    the redundant DependsOn that the CDK itself writes.
    """
    from cfnlint.decode.decode import decode_str

    decoded, errors = decode_str(json.dumps(template))
    return [*errors, *_runner().validate_template(decoded)]


@cache
def _runner() -> Any:
    from cfnlint.config import ConfigMixIn
    from cfnlint.runner import Runner

    return Runner(ConfigMixIn(regions=["eu-west-1"], ignore_checks=["W3005"]))
