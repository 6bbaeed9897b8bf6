"""How many times an app calls the CDK's process, which is most of the time of a synth."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from programs import PROJECT

# 552 today. Its constructs alone make 190: the metrics and alarms with their actions, and the L1s;
# dashboards and policies are finished JSON. At the end of the synthesis each alarm that has actions
# is asked for them, because an app may add one at any time: 24 calls.
MOST_CALLS = 640


def test_the_demo_calls_the_cdk_rarely(tmp_path: Path) -> None:
    """``python app.py`` makes at most 560 calls through jsii;
    each takes up to half a millisecond.
    """
    counter, app = PROJECT / "tests" / "jsii_calls.py", PROJECT / "app.py"
    environment = {**os.environ, "CDK_OUTDIR": str(tmp_path / "out"), "CDK_VALIDATION": "false"}
    run = subprocess.run(
        [sys.executable, counter, app], env=environment, capture_output=True, text=True, check=True
    )
    calls = int(run.stdout.split()[-1])
    assert (tmp_path / "out" / "TritonDemo.template.json").exists()
    assert 100 < calls <= MOST_CALLS
