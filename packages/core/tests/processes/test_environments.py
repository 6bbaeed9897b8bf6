"""Which environment variables child processes get."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from constructs_triton_core.processes.children import foreign_environment, own_environment

SECRETS = [
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_S3"),
    *("GITHUB_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "HTTPS_PROXY", "SSH_AUTH_SOCK"),
]
TOOLS = [
    *(
        "HTTP_PROXY",
        "https_proxy",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
    ),
    *(
        "UV_INDEX_URL",
        "UV_CACHE_DIR",
        "PIP_INDEX_URL",
        "PIP_CERT",
        "NETRC",
        "PYTHON_KEYRING_BACKEND",
    ),
    *("DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES"),
]
LOADERS = ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"]


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        *((foreign_environment, name) for name in (*SECRETS, *LOADERS, "LD_PRELOAD")),
        *((own_environment, name) for name in LOADERS),
    ],
)
def test_variables_that_are_not_passed(
    environment: Callable[..., dict[str, str]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Foreign code gets no credentials, nor the places that have them,
    and no tool this program's Python.
    """
    monkeypatch.setenv(name, "x")
    assert name not in environment()


@pytest.mark.parametrize("name", ["PATH", "HOME", "TMPDIR", "LC_ALL", "LD_LIBRARY_PATH"])
def test_foreign_code_gets_what_programs_need(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs and libraries are found, and text has the user's language."""
    monkeypatch.setenv(name, "x")
    assert foreign_environment(CDK_OUTDIR="out")[name] == "x"
    assert foreign_environment(CDK_OUTDIR="out")["CDK_OUTDIR"] == "out"


@pytest.mark.parametrize("name", [*TOOLS, "AWS_PROFILE"])
def test_tools_work_as_the_user_set_them_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies, certificates, package indexes and the address of Docker reach the user's tools."""
    monkeypatch.setenv(name, "x")
    assert own_environment(NO_COLOR="1") == {**own_environment(), name: "x", "NO_COLOR": "1"}
