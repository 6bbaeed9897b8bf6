"""``constructs-triton compile``: build TensorRT plans in SageMaker jobs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsReader, make_session
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.building.plans.compile_jobs import not_settled
from constructs_triton_tools.building.plans.compiling import CompiledPlan, PlanCompiler
from constructs_triton_tools.building.plans.job_policies import policy_document
from constructs_triton_tools.building.plans.job_request import JobRequest
from constructs_triton_tools.building.plans.plan_files import (
    PlanCache,
    check_destination,
    write_compiled,
)
from constructs_triton_tools.building.plans.plan_tensors import with_tensors
from constructs_triton_tools.cli.compile.arguments import add_arguments
from constructs_triton_tools.cli.compile.preparation import Compilation, job_settings, prepare
from constructs_triton_tools.cli.options import confirm
from constructs_triton_tools.planning.prices import price_of

if TYPE_CHECKING:
    import boto3

__all__ = ["add_arguments", "run"]

Prices = Mapping[JobRequest, Decimal | None]


def run(arguments: argparse.Namespace) -> int:
    """Print the requests, or build the plans that were not built before."""
    session = make_session(arguments.region, arguments.profile)
    settings = job_settings(arguments, session)
    if arguments.policy:
        print_json(policy_document(arguments.policy, settings))
        return 0
    compilation = prepare(arguments, settings)
    for finding in compilation.warnings:
        print_note(f"warning: {finding.message}; {finding.hint}")
    if arguments.dry_run:
        _print_dry_run(arguments, compilation)
        return 0
    for request in compilation.requests:
        check_destination(_folder(arguments, compilation, request))
    _compile(arguments, session, compilation)
    return 0


def _folder(arguments: argparse.Namespace, compilation: Compilation, request: JobRequest) -> Path:
    """Return the folder that a plan is written to."""
    output: Path = arguments.output
    return output / request.build.gpu_folder / compilation.name


# --- without a job --------------------------------------------------------------------------------


def _print_dry_run(arguments: argparse.Namespace, compilation: Compilation) -> None:
    if arguments.json:
        print_json(_dry_run_document(arguments, compilation))
        return
    cache = PlanCache()
    for request in compilation.requests:
        print_lines(
            *_description(request, "not asked in a dry run"),
            f"  trtexec      {shlex.join(request.build.arguments)}",
        )
        if cache.find(request.build.key):
            print_lines("  this plan was built before: no job would start")
    print_lines(
        "", *_not_settled(), "Nothing was called. With --json the complete requests are printed."
    )


def _dry_run_document(arguments: argparse.Namespace, compilation: Compilation) -> dict[str, Any]:
    cache = PlanCache()
    jobs = []
    for request in compilation.requests:
        build = request.build
        jobs.append(
            {
                "gpu_model": build.gpu.gpu_model,
                "instance_types": list(build.instance_types),
                "key": build.key,
                "is_kept_on_this_machine": cache.find(build.key) is not None,
                "tensorrt": build.image.tensorrt,
                "trtexec_arguments": list(build.arguments),
                "uploads": _uploads(request),
                "folder": str(_folder(arguments, compilation, request)),
                "operation": request.operation,
                "request": request.request,
            }
        )
    return {
        "model": compilation.name,
        "config_pbtxt": compilation.config_text,
        "not_settled": list(not_settled()),
        "jobs": jobs,
    }


def _uploads(request: JobRequest) -> dict[str, dict[str, str]]:
    """What has to be in the bucket before the request: each URI with its content,
    or with a path.
    """
    url = request.settings.url
    uploads = {}
    for name, content in request.job_files.items():
        uploads[url(request.job_prefix + name)] = {"text": content.decode()}
    for name, path in request.build.model.files.items():
        uploads[url(request.model_prefix + name)] = {"path": str(path)}
    return uploads


# --- with jobs ------------------------------------------------------------------------------------


def _compile(
    arguments: argparse.Namespace, session: boto3.Session, compilation: Compilation
) -> None:
    """Write each plan to its folder; build those that were not built before in jobs.

    Raises:
        InvalidValueError: the user does not confirm the jobs.
    """
    compiler = PlanCompiler(session, PlanCache(), print_note)
    known = {request: compiler.find(request) for request in compilation.requests}
    missing = [request for request, plan in known.items() if plan is None]
    prices = {request: _price(session, request) for request in missing}
    if missing:
        _announce(prices)
        confirm(arguments, lambda: _question(prices))

    results = []
    for request, plan in known.items():
        compiled = plan or compiler.build(request)
        # A plan that was kept may have a manifest without tensors.
        manifest = with_tensors(compiled.built.manifest, request.build)
        compiled = replace(compiled, built=replace(compiled.built, manifest=manifest))
        folder = write_compiled(
            arguments.output,
            request.build.gpu_folder,
            compilation.config_text,
            compilation.name,
            compiled.built,
        )
        result = _result(request, compiled, folder, prices.get(request))
        results.append(result)
        if not arguments.json:
            print_lines(*_result_lines(request, result))

    if arguments.json:
        print_json({"model": compilation.name, "plans": results})
    else:
        print_lines("", *_next_commands(arguments, compilation))


def _price(session: boto3.Session, request: JobRequest) -> Decimal | None:
    """The price is only shown, so whatever prevents reading it does not stop the command."""
    reader = AwsReader(
        session, connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 1}
    )
    usage = {"processing": "Processing", "training": "Train"}[request.kind]
    try:
        return price_of(reader, request.settings.region, request.build.gpu.name, usage)
    except InvalidValueError:
        return None


def _announce(prices: Prices) -> None:
    """Print what each job is and costs, before the user is asked."""
    for request, price in prices.items():
        shown = "unknown" if price is None else f"{price:f} USD per hour"
        most = "" if price is None else f", so at most {_most(request, price):.2f} USD"
        print_note(*_description(request, shown, most))
    print_note(*_not_settled())


def _description(request: JobRequest, price: str, most: str = "") -> Iterator[str]:
    """Yield the lines about a job; ``most`` is what it can cost, after the time limit."""
    build = request.build
    settings = request.settings
    tensorrt = build.image.tensorrt or "version not published"
    yield f"{request.kind} job {request.name}"
    yield (
        f"  instance     {build.gpu} ({build.gpu.gpu_model}), for {', '.join(build.instance_types)}"
    )
    yield f"  price        {price}"
    yield f"  time limit   {settings.max_seconds} s{most}; usually 10 to 20 minutes with the start"
    yield f"  image        {build.image.uri} (TensorRT {tensorrt})"
    yield f"  network      {'isolated' if settings.is_isolated else 'not isolated'}"


def _not_settled() -> Iterator[str]:
    for text in not_settled():
        yield f"not settled: {text}"


def _question(prices: Prices) -> str:
    """Return the question with the highest cost of all jobs."""
    jobs = "this job" if len(prices) == 1 else f"these {len(prices)} jobs"
    if None in prices.values():
        return f"Start {jobs}, for an unknown price?"
    cost = sum(_most(request, price) for request, price in prices.items() if price is not None)
    return f"Start {jobs}, for at most {cost:.2f} USD?"


def _most(request: JobRequest, price: Decimal) -> Decimal:
    """Return what a job costs that runs until its time limit."""
    return price * request.settings.max_seconds / 3600


def _result(
    request: JobRequest, compiled: CompiledPlan, folder: Path, price: Decimal | None
) -> dict[str, Any]:
    """Return what ``--json`` prints of a plan."""
    cost = None
    if price is not None and compiled.seconds is not None:
        cost = price * Decimal(compiled.seconds) / 3600
    return {
        "folder": str(folder),
        "origin": compiled.origin,
        "instance_types": list(request.build.instance_types),
        "instance_seconds": compiled.seconds,
        "cost_usd": None if cost is None else f"{cost:.4f}",
        "manifest": compiled.built.manifest.to_dict(),
    }


def _result_lines(request: JobRequest, result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about a plan that was written."""
    manifest = result["manifest"]
    types = ", ".join(result["instance_types"])
    yield f"wrote {result['folder']} for {types} ({manifest['gpu_model']})"

    version = manifest["tensorrt"]
    origin = result["origin"]
    yield f"  TensorRT {version or 'not known'}, {manifest['plan_bytes']} bytes, from {origin}"
    if origin == "a job":
        seconds = result["instance_seconds"]
        duration = "not known" if seconds is None else f"{seconds:.0f} s"
        cost = "unknown" if result["cost_usd"] is None else f"about {result['cost_usd']} USD"
        yield f"  duration {duration}, cost {cost}"

    # What is published is the beginning of a version, such as 10.0.
    published = request.build.image.tensorrt
    if published and version and not f"{version}.".startswith(f"{published}."):
        yield f"  warning: the image has TensorRT {version}, and not {published} as published"


def _next_commands(arguments: argparse.Namespace, compilation: Compilation) -> Iterator[str]:
    """Yield how to check the plans, and how to use them in a stack."""
    release = f" --image-version {compilation.image_version}" if compilation.image_version else ""
    for request in compilation.requests:
        repository = shlex.quote(str(arguments.output / request.build.gpu_folder))
        instance_type = request.build.instance_types[0]
        yield (
            f"Check it:  constructs-triton check {repository} "
            f"--instance-type {instance_type}{release}"
        )

    first = compilation.requests[0].build.instance_types[0]
    used_on = f'instance_type=InstanceType.of("{first}")'
    yield f'Use it:    ModelSource.from_compiled("{arguments.output}", {used_on})'
    gpus = {request.build.gpu.compute_capability for request in compilation.requests}
    if len(gpus) > 1:
        yield (
            "           Give instance_type a list of types "
            "for one archive with the plans of several GPUs"
        )
