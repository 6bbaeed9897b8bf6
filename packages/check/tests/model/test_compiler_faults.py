"""What only the compiler of Python refuses is found, whichever statement has it."""

from __future__ import annotations

import ast

import pytest

from triton_model_check.model.compiler_faults import compiler_fault
from triton_model_check.model.module_index import ModuleIndex

_NESTED = "".join(f"{' ' * depth}for x in y:\n" for depth in range(21)) + f"{' ' * 21}pass\n"


@pytest.mark.parametrize(
    "source",
    [
        "return 1\n",
        "if x:\n    return\n",
        "class A:\n    return 1\n",
        "def f():\n    class A:\n        return 1\n",
        "def f(x, *x):\n    pass\n",
        "f = lambda x, *, x: x\n",
        "f(a=1, a=2)\n",
        "class A(b=1, b=2):\n    pass\n",
        "def f(__debug__):\n    pass\n",
        "__\N{FULLWIDTH LATIN SMALL LETTER D}ebug__ = 1\n",
        "def f():\n    from os import *\n",
        "import os\nfrom __future__ import annotations\n",
        "from __future__ import braces\n",
        "try:\n    pass\nexcept:\n    pass\nexcept ValueError:\n    pass\n",
        "def f():\n    [x async for x in y]\n",
        "def f():\n    [x for x in y if (x := 1)]\n",
        "*a, *b = c\n",
        "yield\n",
        "break\n",
        "def f():\n    x = 1\n    global x\n",
        "match x:\n    case y:\n        pass\n    case 1:\n        pass\n",
        _NESTED,
    ],
)
def test_statements_that_the_compiler_refuses_are_found(source: str) -> None:
    """A file that the compiler refuses has its error, though the parser accepts it."""
    content = source.encode()
    index = ModuleIndex(ast.parse(content))
    with pytest.raises(SyntaxError) as expected:
        compile(index.tree, "model.py", "exec", dont_inherit=True, optimize=0)
    found = compiler_fault(index, content)
    assert found is not None
    assert found.msg == expected.value.msg


def test_files_without_such_statements_have_no_fault() -> None:
    """A file in which functions return and arguments differ has no error."""
    content = b"class A:\n    def f(self, x, *y):\n        return f(x, y=1, z=2)\n"
    assert compiler_fault(ModuleIndex(ast.parse(content)), content) is None
