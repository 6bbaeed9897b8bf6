"""For which Python and NumPy the environments of a local server are built."""

from constructs_triton_tools.local.stand_ins.environments import server_target


def test_target_of_this_machine() -> None:
    """The bundled server never uses NumPy 2, and a newer Python has no NumPy 1."""
    local = server_target((3, 11), "/opt/bin", "/venv")
    assert (local.python, local.must_keep_numpy, local.numpy_constraint) == (
        "3.11",
        True,
        "numpy<2",
    )
    assert server_target((3, 13), "/opt/bin", "").numpy_constraint == ""
