"""Which environment variables child processes get."""

from __future__ import annotations

import pytest

from constructs_triton_core.processes.environments import foreign_environment, own_environment

SECRETS = [
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    *("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ENDPOINT_URL_S3"),
    *("GITHUB_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "HTTPS_PROXY", "SSH_AUTH_SOCK"),
]
TOOLS = [
    *("HTTP_PROXY", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("UV_INDEX_URL", "UV_CACHE_DIR", "PIP_INDEX_URL", "PIP_CERT", "NETRC", "PYTHON_KEYRING_BACKEND"),
    *("DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES"),
]
LOADERS = ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"]


@pytest.mark.parametrize("name", [*SECRETS, *LOADERS, "LD_PRELOAD"])
def test_foreign_code_does_not_get_the_callers_variables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, the places that have them, and what changes the import of modules are not passed."""
    monkeypatch.setenv(name, "x")
    assert name not in foreign_environment()


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
    assert own_environment()[name] == "x"


@pytest.mark.parametrize("name", LOADERS)
def test_tools_have_their_own_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of this program's Python do not reach a tool that is written in another Python."""
    monkeypatch.setenv(name, "x")
    assert name not in own_environment()
    assert own_environment(NO_COLOR="1")["NO_COLOR"] == "1"
