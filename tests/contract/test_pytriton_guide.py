"""The apps of docs/guides/from_pytriton.md: the function as a model, and PyTriton in your own image."""

from __future__ import annotations

import re
from pathlib import Path

from cdk_apps import flat, only
from guide_apps import programs_of, templates_of
from programs import PROJECT

PAGE = "from_pytriton.md"


def test_image_and_app_of_the_page_deploy_pytriton(tmp_path: Path) -> None:
    """The component runs the image that the page builds, whose Dockerfile names the model."""
    text = (PROJECT / "docs/guides" / PAGE).read_text()
    (dockerfile,) = re.findall(r"^```dockerfile[^\n]*\n(.+?)^```", text, re.M | re.S)
    assert "ENV SAGEMAKER_TRITON_DEFAULT_MODEL_NAME=scaler\n" in dockerfile
    (code,) = [each for each in programs_of(PAGE) if "ContainerInferenceComponent(" in each]
    assert 'ServingImage.from_asset("image")' in code
    image = tmp_path / "image"
    image.mkdir()
    (image / "Dockerfile").write_text(dockerfile)
    template = templates_of(code.replace('"image"', repr(str(image))), tmp_path)["PyTriton"]
    container = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    assert "container-assets" in flat(container["Image"])
