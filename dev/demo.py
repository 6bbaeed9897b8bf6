"""``make demo``: synthesize app.py, run its endpoint with the Triton server, classify digits.

The same steps by hand::

    npx cdk synth
    constructs-triton local up cdk.out --endpoint digits
    constructs-triton invoke digits --input image=@seven.png --endpoint-url http://127.0.0.1:8080
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.endpoints import DeclaredEndpoint, declared_endpoints
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.untrusted.terminal import (
    print_lines,
    print_note,
    print_table,
    show_work,
)

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "assets" / "training"))
from split import encode_png, held_out_images  # noqa: E402 - found by the line above

ASSEMBLY = PROJECT / "cdk.out"
STACK = "TritonDemo"
ENDPOINT = "digits"
WANTED_ACCURACY = 0.95

#: Pictures in a request.
BATCH = 64
#: Rows of the table of answers: the first pictures, and the wrong answers after them.
SHOWN = 10
SHOWN_WRONG = 10
#: Columns of the tables. They are the same in a terminal and in the log of a CI service.
WIDTH = 84

#: The resource types that say most about a stack. The other types are counted together.
TELLING_TYPES = (
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::Model",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::IAM::Role",
)

#: What to do after the demo, and a command or file in this folder for it.
NEXT = (
    (
        "Draw a digit: start the endpoint, and open the address that the command prints",
        ".venv/bin/constructs-triton local up cdk.out --endpoint digits --ui",
    ),
    (
        "Read the template that a deployment would use, in this file",
        "cdk.out/TritonDemo.template.json",
    ),
    (
        "Check the model repository for errors that SageMaker or Triton would report",
        ".venv/bin/constructs-triton check assets/model_repositories/digits",
    ),
    ("Run the linters, the type checker and the tests", "make test"),
)


@dataclass(frozen=True)
class Answers:
    """The label and its probability that the endpoint returned for each picture, and the digit."""

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    digits: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """The share of pictures whose label is the digit."""
        return float(np.mean(self.labels == self.digits))

    @property
    def is_accurate(self) -> bool:
        """Whether the accuracy is that of the model."""
        return self.accuracy >= WANTED_ACCURACY

    @property
    def wrong(self) -> list[int]:
        """The numbers of the pictures whose label is another digit."""
        return [int(picture) for picture in np.flatnonzero(self.labels != self.digits)]


def main() -> int:
    """Return 0 if the endpoint has the accuracy of its model."""
    print_lines(
        f'This demo runs the endpoint "{ENDPOINT}" of app.py on your machine, with the real Triton',
        "server. It needs no AWS account and no GPU.",
    )

    with step("1. Synthesize app.py, as `cdk deploy` does"):
        synthesize()
    print_stack(Assembly(ASSEMBLY).stack(STACK))

    pngs, digits = held_out_pictures()
    title = f"3. Send {len(pngs)} pictures of digits, {BATCH} in a request"
    with running_endpoint() as url, step(title):
        labels, probabilities = classify(url, pngs)

    answers = Answers(labels, probabilities, digits)
    print_answers(answers)
    print_accuracy(answers)
    print_next()
    return 0 if answers.is_accurate else 1


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print a title before a step of the demo, and the seconds that it took after it.

    On a terminal, the elapsed time is shown meanwhile.
    """
    print_lines("", [(title, "1")])
    start = time.perf_counter()
    with show_work("running"):
        yield
    print_lines(f"   done in {time.perf_counter() - start:.1f} s")


# Step 1: the template.


def synthesize() -> None:
    """Write the cloud assembly as ``cdk deploy`` would."""
    shutil.rmtree(ASSEMBLY, ignore_errors=True)
    cdk = PROJECT / "node_modules" / ".bin" / "cdk"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [cdk, "synth", "--quiet"],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # If the command succeeds, it only advises to configure feature flags of the CDK. If it fails,
    # Python prints its output when it exits, after the line of show_work.
    if done.returncode != 0:
        sys.exit(done.stdout)


def print_stack(stack: SynthesizedStack) -> None:
    """Print how many resources a template contains, and which endpoints."""
    types = Counter(resource.type for resource in stack.template.resources.values())
    print_lines("", f"{stack.name}.template.json contains {types.total()} resources:", "")
    print_table([("count", "right"), "type"], resource_rows(types), width=WIDTH)
    print_lines("", "Its endpoints, and their variants:", "")
    print_table(
        ["endpoint", "variant", "instance type", ("share of requests", "right")],
        variant_rows(declared_endpoints(stack, is_complete=False)),
        width=WIDTH,
    )


def resource_rows(types: Counter[str]) -> list[tuple[int, str]]:
    """Return the count of each telling type that is in the template, then that of all others."""
    rows = [(types[name], name) for name in TELLING_TYPES if name in types]
    others = types.total() - sum(count for count, _ in rows)
    return [*rows, (others, "other types")]


def variant_rows(endpoints: Iterable[DeclaredEndpoint]) -> list[tuple[str, str, str, str]]:
    """Return the endpoint, name, instance type and share of requests of each variant."""
    rows = []
    for endpoint in endpoints:
        # SageMaker divides the requests in the proportion of the weights.
        total = sum(variant.weight for variant in endpoint.variants)
        for variant in endpoint.variants:
            instance_type = variant.instance_type or "serverless"
            share = f"{variant.weight / total:.0%}"
            rows.append((endpoint.name, variant.name, instance_type, share))
    return rows


# Step 2: the server.


@contextmanager
def running_endpoint() -> Iterator[str]:
    """Start the synthesized endpoint on a free port, yield its URL, and stop it with SIGINT."""
    command = [sys.executable, "-m", "constructs_triton.cli", "local", "up", str(ASSEMBLY)]
    command += ["--endpoint", ENDPOINT, "--port", "0", "--json"]
    # Printed while the elapsed time is shown, its messages would be in the middle of that line.
    with (
        TemporaryFile("w+") as messages,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages, text=True) as server,
    ):
        try:
            with step("2. Start the endpoint, with a Triton server for each variant"):
                url = _url_when_ready(server)
            print_lines(f"   It answers at {url}, as SageMaker's runtime API does.")
            yield url
        finally:
            server.send_signal(signal.SIGINT)
            with show_work("stopping the servers"):
                server.wait(timeout=60)
            messages.seek(0)
            print_note(*messages.read().splitlines())


def _url_when_ready(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    ready: dict[str, Any] = json.loads(line) if line else {}
    # The command cannot start the endpoint. Its messages have the reason.
    if "url" not in ready:
        sys.exit(server.wait() or 1)
    return str(ready["url"])


# Step 3: the answers.


def held_out_pictures() -> tuple[list[bytes], NDArray[np.int64]]:
    """Return pictures that the model was not trained on, as PNG files, and their digits."""
    images, digits = held_out_images()
    return [encode_png(image) for image in images], digits


def classify(url: str, pngs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the digit of each PNG file and its probability, with ``BATCH`` files per request."""
    from constructs_triton_client import TritonClient  # noqa: PLC0415 - imported after synth

    client = TritonClient.for_endpoint(ENDPOINT, endpoint_url=url)
    labels = []
    probabilities = []
    for start in range(0, len(pngs), BATCH):
        batch = np.array(pngs[start : start + BATCH], dtype=object)
        result = client.infer({"image": batch[:, np.newaxis]})
        labels.append(result["label"][:, 0])
        probabilities.append(result["probabilities"].max(axis=1))
    return np.concatenate(labels).astype(np.int64), np.concatenate(probabilities)


def print_answers(answers: Answers) -> None:
    """Print the first answers, and wrong ones after them."""
    print_lines(
        "", f"The first {SHOWN} answers, and up to {SHOWN_WRONG} wrong answers after them:", ""
    )
    print_table(
        [("picture", "right"), ("digit", "right"), ("answer", "right"), "probability", ""],
        answer_rows(answers),
        width=WIDTH,
    )


def answer_rows(answers: Answers) -> list[tuple[int, int, int, str, str]]:
    """Return the number, digit, answer, probability and mark of the pictures to show."""
    first = list(range(min(SHOWN, len(answers.digits))))
    later_wrong = [picture for picture in answers.wrong if picture >= SHOWN]

    rows = []
    for picture in first + later_wrong[:SHOWN_WRONG]:
        digit = int(answers.digits[picture])
        label = int(answers.labels[picture])
        probability = f"{answers.probabilities[picture]:.3f}"
        mark = "" if label == digit else "wrong"
        rows.append((picture, digit, label, probability, mark))
    return rows


def print_accuracy(answers: Answers) -> None:
    """Print the accuracy, and whether it is that of the model."""
    count = len(answers.digits)
    correct = count - len(answers.wrong)
    verdict = "as expected" if answers.is_accurate else "too low"
    print_lines(
        "",
        [(f"Accuracy: {answers.accuracy:.1%}", "1"), f" ({correct} of {count} answers are right)"],
        f"This is {verdict}: at least {WANTED_ACCURACY:.0%} on pictures outside the training data.",
    )


def print_next() -> None:
    """Print what to look at after the demo."""
    print_lines("", [("Try next, in this folder", "1")])
    for purpose, command_or_file in NEXT:
        print_lines(f"{purpose}:", f"  {command_or_file}")


if __name__ == "__main__":
    sys.exit(main())
