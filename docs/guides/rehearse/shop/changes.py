"""Write each change of the page as NAME.py and its cloud assembly as NAME.out.

``base`` is the app, and ``cdk`` has two edits.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

CHANGES = {
    "base": {},
    "cdk": {'name="id"': 'name="sku"', '"Jobs")': '"Jobs", fifo=True)'},
}
CONTEXT = {"aws:cdk:enable-path-metadata": True}
"""What ``cdk synth`` passes to every app: resources have the paths of their constructs."""


def synthesize(name: str, code: str) -> None:
    """Run the code of an app and synthesize its stack."""
    names = {"__name__": name}
    exec(compile(code, f"{name}.py", "exec"), names)
    app = cdk.App(
        outdir=f"{name}.out",
        context=CONTEXT,
        builtin_cloud_formation_validation=False,
    )
    names["ShopStack"](app, "Shop")
    app.synth()


def main() -> None:
    """Write all changes."""
    code = Path("app.py").read_text(encoding="utf-8")
    for name, edits in CHANGES.items():
        changed = code
        for before, after in edits.items():
            if before not in changed:
                raise ValueError(f"{name}: app.py does not contain {before!r}")
            changed = changed.replace(before, after)
        Path(f"{name}.py").write_text(changed, encoding="utf-8")
        synthesize(name, changed)


if __name__ == "__main__":
    main()
