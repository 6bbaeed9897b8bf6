"""Write each change of the page as NAME.py and its cloud assembly as NAME.out; vision.out has no
change.

The apps differ in a few words each, so one process synthesizes all of them.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

CHANGES = {
    "vision": ("", ""),
    "instance_type": ('"ml.c6i.large"', '"ml.c6i.xlarge"'),
    "content": ("", ""),
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
    names["VisionStack"](app, "Vision")
    app.synth()


def main() -> None:
    """Write all changes."""
    code = Path("app.py").read_text(encoding="utf-8")
    for name, (before, after) in CHANGES.items():
        if before not in code:
            raise ValueError(f"{name}: app.py does not contain {before!r}")
        changed = code.replace(before, after) if before else code
        Path(f"{name}.py").write_text(changed, encoding="utf-8")
        if name == "content":
            model = Path("models/classifier/1/model.py")
            model.write_text(
                f"{model.read_text(encoding='utf-8')}\n# a new release\n",
                encoding="utf-8",
            )
        synthesize(name, changed)


if __name__ == "__main__":
    main()
