"""The page of ``local up --ui`` in a real browser, with real Triton servers behind it.

With PAGE_PICTURES=docs/images the pictures of the documentation are written there.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from browser_page import PICTURES, browsing, needs_browser, opened_page, serious_findings
from local_assembly import (
    AssemblyBuilder,
    adding_ensemble,
    adding_model,
    below,
    write_archive,
    write_files,
)
from playwright.sync_api import Browser, Page, expect
from programs import PROJECT, synthesize_app
from square_detectors import picture, without_environment, write_detector
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_repository import ModelRepository

sys.path.insert(0, str(PROJECT / "assets" / "training"))
BUDGET_MINUTES = 3
pytestmark = [needs_server, needs_browser]
#: A seven, as fractions of the pad.
SEVEN = ((0.25, 0.15), (0.75, 0.15), (0.62, 0.4), (0.5, 0.65), (0.42, 0.88))
SUM_OF_FAILURES = re.compile(
    r"\d+ of \d+ calls failed in the last minute: model_59; \d wrong requests? w(as|ere) refused"
)
DROP_SCRIPT = """([box, name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))], name));
    box.dispatchEvent(
        new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }),
    );
}"""

#: The colour of a pixel of a canvas.
PIXEL = """(canvas, [x, y]) =>
    [...canvas.getContext("2d").getImageData(x, y, 1, 1).data.slice(0, 3)]"""

#: The pixels of the first chart that have a color of the page.
COLORED_PIXELS = """(name) => {
    const canvas = document.querySelector("#charts canvas");
    const paint = document.createElement("canvas").getContext("2d");
    paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    paint.fillRect(0, 0, 1, 1);
    const [red, green, blue] = paint.getImageData(0, 0, 1, 1).data;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
        count += data[at] === red && data[at + 1] === green && data[at + 2] === blue;
    return count;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium of the system."""
    with browsing() as browser:
        yield browser


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens the page of a run; an error of its scripts, or a request to another host,
    fails the test.
    """
    problems: list[str] = []
    pages: list[Page] = []

    def open_page(local: LocalEndpoint, width: int = 1440, scheme: str = "light") -> Page:
        page = opened_page(browser, local.description["page"], problems, width=width, scheme=scheme)
        pages.append(page)
        page.wait_for_selector("#send")
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert problems == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """The two endpoints of ``app.py``: the digits of ``make demo``, and the catalog."""
    folder = tmp_path_factory.mktemp("demo")
    synthesize_app(PROJECT / "app.py", folder)
    with LocalEndpoint.from_assembly(folder, ui=True) as local:
        yield local


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[LocalEndpoint]:
    """An endpoint whose model ends its own process when it is called with -1."""
    builder = AssemblyBuilder(tmp_path / "cdk.out")
    builder.serve("Fragile", below("m", adding_model(1)), "fragile")
    builder.single_model(
        "Steps", builder.asset("steps", adding_ensemble("sum", 10, 1)), {DEFAULT: "sum"}
    )
    builder.endpoint("Sum", {"Blue": ("Steps", 1), "Green": ("Steps", 3)}, name="sum")
    with LocalEndpoint.from_assembly(builder.write(), ui=True) as local:
        yield local


@pytest.fixture
def detector(tmp_path: Path) -> Iterator[LocalEndpoint]:
    """An endpoint of a detector that finds red and green squares."""
    labels = tmp_path / "labels.txt"
    labels.write_text("red\ngreen\n")
    write_detector(tmp_path / "squares.onnx", "yolov8")
    new = ["model", "new", str(tmp_path / "squares.onnx"), "--task", "detect"]
    models = tmp_path / "models"
    assert main([*new, "--labels", str(labels), "-o", str(models)]) == 0
    builder = AssemblyBuilder(tmp_path / "cdk.out")
    without_environment(models)
    builder.serve_packed(ModelRepository.from_directory(models), "squares")
    with LocalEndpoint.from_assembly(builder.write(), ui=True) as local:
        yield local


DEFAULT = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"


def draw(page: Page, points: tuple[tuple[float, float], ...] = SEVEN) -> None:
    """Draw on the pad with the mouse."""
    page.get_by_text("Draw a picture").click()
    pad = page.locator("canvas.pad")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()
    expect(page.get_by_text("your drawing, a PNG")).to_be_visible()


def send(page: Page) -> None:
    """Send the form, and wait for the answer."""
    page.click("#send")
    expect(page.locator("#answer .answer")).to_be_visible()


def output(page: Page, name: str) -> str:
    """The values of an output of the answer."""
    row = page.locator("#answer tbody tr", has=page.locator("th", has_text=name)).first
    return row.locator("td").last.inner_text()


def traffic(local: LocalEndpoint, seconds: int = 25) -> None:
    """Send batches of digits for a while, so that a picture of the page has figures."""
    client = TritonClient.for_endpoint("digits", endpoint_url=local.endpoint_url)
    images, _ = a_held_out_digit()
    generator = np.random.default_rng(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(int(generator.integers(2, 12))):
            batch = np.full((int(generator.integers(1, 9)), 1), images, dtype=object)
            client.infer({"image": batch})
        time.sleep(0.5)


def a_held_out_digit() -> tuple[bytes, int]:
    """A PNG file that the network was not trained on, and its digit."""
    from split import encode_png, held_out_images

    images, digits = held_out_images()
    return encode_png(images[0]), int(digits[0])


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)]
)
def test_drawn_digit_is_classified(
    demo: LocalEndpoint, open_page: Open, tmp_path: Path, scheme: str, width: int
) -> None:
    """A digit drawn in the browser is classified, on a desktop and a phone,
    in both colour schemes.
    """
    if PICTURES:
        traffic(demo)
    page = open_page(demo, width, scheme)
    draw(page)
    send(page)
    assert output(page, "label") == "7"
    step = page.locator(".step", has_text="classifier")
    expect(step).to_contain_text("queue")
    expect(page.locator("#charts tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_findings(page) == []
    page.evaluate("scrollTo(0, 0)")
    folder = Path(PICTURES or tmp_path)
    page.screenshot(path=folder / f"page_{scheme}_{width}.png", full_page=True)


def test_dropped_picture_is_sent_as_it_is(demo: LocalEndpoint, open_page: Open) -> None:
    """The bytes of a picture that is dropped on the form are the element of the BYTES tensor."""
    png, digit = a_held_out_digit()
    page = open_page(demo)
    box = page.locator(".drop").element_handle()
    page.evaluate(DROP_SCRIPT, [box, "digit.png", base64.b64encode(png).decode()])
    expect(page.locator("img.preview")).to_be_visible()
    send(page)
    assert output(page, "label") == str(digit)


def test_boxes_are_drawn_on_the_picture(
    detector: LocalEndpoint, open_page: Open, tmp_path: Path
) -> None:
    """What a detector finds is drawn on the picture that was sent, and listed with its score."""
    file = tmp_path / "squares.png"
    squares = (("red", 160, 80), ("green", 320, 240), ("red", 480, 160), ("green", 80, 320))
    cells = [(colour, (x, y, x + 80, y + 80)) for colour, x, y in squares]
    file.write_bytes(picture(*cells, size=(640, 480)))
    page = open_page(detector)
    page.locator("input[type=file]").set_input_files(file)
    send(page)
    drawn = page.get_by_role(
        "img", name=re.compile(r"The picture with what was found: .*red 0\.94")
    )
    expect(drawn).to_have_js_property("width", 640)
    listed = page.locator("#answer tr", has_text="160, 80, 240, 160").first
    expect(listed.locator("th")).to_have_text("red")
    edge, inside = (drawn.evaluate(PIXEL, place) for place in ([160, 140], [200, 140]))
    assert (edge, inside) == ([230, 25, 75], [240, 0, 0])
    assert serious_findings(page) == []
    drawn.screenshot(path=Path(PICTURES or tmp_path) / "detections.png")


def test_each_call_can_be_copied_and_run(
    demo: LocalEndpoint, open_page: Open, tmp_path: Path
) -> None:
    """The call as Python, curl and AWS CLI gives the answer of the page,
    with the files that it saves.
    """
    png, digit = a_held_out_digit()
    (tmp_path / "digit.png").write_bytes(png)
    page = open_page(demo)
    page.locator("input[type=file]").set_input_files(tmp_path / "digit.png")
    page.get_by_text("Show as code").click()
    run_calls(page, tmp_path / "digits", f"[[b'{digit}']]")
    page.get_by_role("button", name="sentiment").click()
    page.get_by_label("Text, or a JSON list of strings").fill("It's a “great” model, $HOME")
    send(page)
    run_calls(page, tmp_path / "catalog", "positive")


def run_calls(page: Page, folder: Path, expected: str) -> None:
    """Save the files of the calls and run each text in their folder."""
    folder.mkdir()
    for link in page.locator("a.save").all():
        with page.expect_download() as download:
            link.click()
        download.value.save_as(folder / download.value.suggested_filename)
    page.evaluate(
        "document.querySelectorAll('#calls details').forEach((each) => { each.open = true; })"
    )
    python, curl, cli = (
        page.locator(f"#call-{name}").inner_text() for name in ("python", "curl", "cli")
    )
    assert shutil.which("aws"), "the AWS CLI is missing: apt-get install awscli"
    printed = run([sys.executable, "-c", python], folder)
    assert expected in printed
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answers = []
    for script in (curl, cli):
        printed = run(["bash", "-ec", script], folder, environment)
        written = list(folder.glob("answer.*"))
        answers.append(printed.encode() + b"".join(each.read_bytes() for each in written))
        for each in written:
            each.unlink()
    plain = expected.strip("[]'").removeprefix("b'").replace("\\x89", "").encode()
    assert [plain in each for each in answers] == [True, True]


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_model_that_fails_turns_red(failing: LocalEndpoint, open_page: Open) -> None:
    """A model that ends its process is shown as failed, with the cause and the fix,
    and stays so.
    """
    page = open_page(failing)
    page.get_by_label("Numbers").fill("[41]")
    send(page)
    assert output(page, "Y") == "42"
    page.get_by_label("Numbers").fill("[-1]")
    page.click("#send")
    expect(page.locator("#answer .failure")).to_contain_text("Status 424")
    row = page.locator("tr", has=page.get_by_role("button", name="m", exact=True))
    expect(row.locator(".state")).to_have_text("failed")
    expect(page.locator("#failure")).to_contain_text("Cause")
    expect(page.locator("#errors tbody tr")).to_contain_text("424")
    page.locator("tr.endpoint", has_text="sum").scroll_into_view_if_needed()
    assert serious_findings(page) == []
    page.reload()
    expect(page.locator("#failure")).to_contain_text("Fix")


def test_failing_step_of_an_ensemble_is_named(failing: LocalEndpoint, open_page: Open) -> None:
    """The step that failed is red, with the file and line of its model;
    the steps before it are not.
    """
    page = open_page(failing)
    page.locator("button.row").last.click()
    page.get_by_label("Numbers").fill(
        "[-13]"
    )  # the first step adds 10, and the second raises for -3
    page.click("#send")
    expect(page.locator("#failure")).to_contain_text("second/1/model.py, line 20")
    expect(page.locator(".step.failed h3")).to_have_text("second")
    counts = page.locator("#batches tr", has_text="second").locator("td")
    expect(counts.nth(1)).to_have_text("1")
    assert serious_findings(page) == []


def test_first_load_waits_for_no_server(failing: LocalEndpoint, open_page: Open) -> None:
    """Servers that do not answer keep neither the page nor its form away."""
    servers = [
        int(each) for each in re.findall(r'"process_id": (\d+)', json.dumps(failing.description))
    ]
    assert len(servers) == 3
    for each in servers:
        os.kill(each, signal.SIGSTOP)
    try:
        page = open_page(failing)
        expect(page.locator("#steps-note")).to_contain_text("the server has not answered yet")
    finally:
        for each in servers:
            os.kill(each, signal.SIGCONT)
    expect(page.locator("#steps-note")).to_contain_text("Means of a request")


def test_form_is_read_again_after_a_failure(failing: LocalEndpoint, open_page: Open) -> None:
    """A form that cannot be read is named, and read again until it can."""
    page = open_page(failing)
    page.route("**/ui/form?*", lambda route: route.abort())
    page.locator("button.row").last.click()
    expect(page.locator("#form")).to_contain_text("The run does not answer")
    page.unroute("**/ui/form?*")
    page.wait_for_selector("#send")


def test_endpoints_and_variants_are_called_by_keyboard(
    failing: LocalEndpoint, open_page: Open
) -> None:
    """The keyboard reaches each variant of each endpoint, and the call goes to that variant."""
    page = open_page(failing)
    button = page.locator("button.row").last
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#try-title")).to_have_text("Try sum, Green")
    page.get_by_label("Numbers").fill("1, 2")
    page.locator("#send").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#answer .answer")).to_be_visible()
    assert output(page, "Z") == "12, 13"
    rows = page.locator("#endpoints tbody", has_text="sum").locator("tr:not(.endpoint)")
    expect(rows.last.locator("td").nth(4)).to_have_text("1")
    assert "Green" in rows.last.inner_text()
    expect(rows.first.locator("td").nth(4)).to_have_text("0")


def test_page_is_loaded_again_in_the_middle(demo: LocalEndpoint, open_page: Open) -> None:
    """After a reload the same model is selected, and the charts still have the calls before it."""
    page = open_page(demo)
    page.get_by_role("button", name="sentiment").click()
    page.get_by_label("Text, or a JSON list of strings").fill("once")
    send(page)
    expect(page.locator("#charts tbody tr").first).to_be_visible()
    page.reload()
    expect(page.locator("#try-title")).to_contain_text("Try sentiment of catalog")
    expect(page.locator("#charts tbody tr").first).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")


#: Returns the mean of each channel, and a PNG file of two pixels.
SEEING_MODEL = """
import base64
import numpy as np
import triton_python_backend_utils as pb_utils

PNG = base64.b64decode("{png}")


class TritonPythonModel:
    def execute(self, requests):
        return [
            self.answer(pb_utils.get_input_tensor_by_name(each, "image").as_numpy())
            for each in requests
        ]

    def answer(self, image):
        scores = image.mean(axis=(2, 3)).astype(np.float16)
        picture = np.full((len(image), 1), PNG, dtype=object)
        outputs = [pb_utils.Tensor("scores", scores), pb_utils.Tensor("seen", picture)]
        return pb_utils.InferenceResponse(outputs)
"""
SEEING_CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 8, 8 ] } ]
output [ { name: "scores" data_type: TYPE_FP16 dims: [ 3 ] label_filename: "colors.txt" },
         { name: "seen" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def test_pixels_have_the_layout_and_scale_that_are_chosen(open_page: Open, tmp_path: Path) -> None:
    """A picture becomes numbers in the layout and on the scale that the user chose;
    the answer has labels.
    """
    from PIL import Image

    Image.new("RGB", (20, 10), (255, 102, 0)).save(tmp_path / "orange.png")
    png = base64.b64encode((tmp_path / "orange.png").read_bytes()).decode()
    files = {
        "config.pbtxt": SEEING_CONFIG,
        "1/model.py": SEEING_MODEL.replace("{png}", png),
        "colors.txt": "red\ngreen\nblue\n",
    }
    archive = write_archive(tmp_path / "seeing.tar.gz", below("seeing", files))
    with LocalEndpoint.from_repository(archive, ui=True) as local:
        page = open_page(local)
        page.get_by_text("Fill from a picture").click()
        page.locator("input[type=file]").set_input_files(tmp_path / "orange.png")
        expect(page.locator("fieldset .note", has_text="Choose the layout")).to_be_visible()
        page.get_by_label("Layout").select_option("NCHW")
        page.get_by_label("Scale").select_option("unit")
        expect(page.locator("fieldset")).to_contain_text("orange.png as 8")
        send(page)
        assert output(page, "scores") == "1, 0.399902, 0"
        assert page.locator(".scores tbody th").all_inner_texts() == ["red", "green", "blue"]
        assert page.locator("img.output").evaluate("(each) => each.naturalWidth") == 20
        page.get_by_label("Layout").select_option("NHWC")
        expect(
            page.locator("fieldset .note", has_text="A picture needs 1 or 3 channels")
        ).to_be_visible()
        page.get_by_label("Layout").select_option("NCHW")
        run_calls(page, tmp_path / "calls", "b'\\x89PNG")


def test_tokens_are_shown_as_they_come(open_page: Open) -> None:
    """The text of a model that generates grows while it is generated."""
    repository = PROJECT / "assets" / "model_repositories" / "story"
    with LocalEndpoint.from_repository(repository, ui=True) as local:
        page = open_page(local)
        page.locator("textarea").nth(0).fill("Once upon a time")
        page.locator("textarea").nth(1).fill("30")
        page.click("#send")
        lengths = set()
        while "complete" not in page.locator("#answer").inner_text():
            lengths.add(len(page.locator("#answer .stream").inner_text()))
            page.wait_for_timeout(50)
        assert len(lengths) > 5
        note = page.locator("#answer .note").last.inner_text().replace("\u00a0", " ")
        assert re.fullmatch(
            r"first token after \S+ m?s, then \S+ \w+ a second; \d+ events in \S+ m?s, complete",
            note,
        )
        text = page.locator("#answer .stream").inner_text()
        assert text.strip().startswith("there was a small lighthouse")
        expect(page.locator("#answer")).to_contain_text("30 events")
        python = page.locator("#call-python").inner_text()
        assert (
            run([sys.executable, "-c", python], PROJECT)
            .strip()
            .startswith("there was a small lighthouse")
        )


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """An endpoint of 60 models."""
    folder = tmp_path_factory.mktemp("sixty") / "models"
    for number in range(60):
        write_files(folder, below(f"model_{number:02}", adding_model(1)))
    with LocalEndpoint.from_repository(
        folder, is_multi_model=True, endpoint="many", ui=True
    ) as local:
        yield local


def fail_half_of_the_calls(local: LocalEndpoint) -> None:
    """Call the first model with success, the last one with a failure, then send a wrong request."""
    client = TritonClient.for_endpoint("many", endpoint_url=local.endpoint_url)
    calls = [("X", 1, 0), ("X", -3, 59)] * 5
    for name, value, number in [*calls, ("W", 1, 0)]:
        with suppress(InvocationError):
            client.infer(
                {name: np.array([value], np.float32)}, TargetModel=f"model_{number:02}.tar.gz"
            )


@pytest.mark.parametrize(("scheme", "width", "height"), [("light", 1440, 900), ("dark", 390, 844)])
def test_failures_are_on_the_first_screen(
    sixty: LocalEndpoint, open_page: Open, scheme: str, width: int, height: int
) -> None:
    """Of 60 models the one that fails half of the calls is first, red and named;
    a refused request is not.
    """
    fail_half_of_the_calls(sixty)
    page = open_page(sixty, width, scheme)
    expect(page.locator("#health.bad")).to_have_text(SUM_OF_FAILURES)
    expect(page.locator("#errors")).to_contain_text("request")
    first = page.locator("#endpoints tbody tr:not(.endpoint)").first
    expect(first).to_contain_text("model_59")
    expect(first.locator(".state")).to_have_text("failed")
    for place in ("#health.bad", "tr.endpoint td.bad", "#endpoints .state[data-state=failed]"):
        box = page.locator(place).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < height, place
    healthy = page.locator("tr", has=page.get_by_role("button", name="model_00"))
    expect(healthy.locator(".state")).to_have_text("ready")
    expect(page.locator("#failure")).to_contain_text("models/model_59/1/model.py, line 20")
    assert page.evaluate(COLORED_PIXELS, "--bad") > page.evaluate(COLORED_PIXELS, "--line-1")
    page.get_by_label("Filter").fill("failed")
    expect(page.locator("button.row:visible")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_findings(page) == []


def test_model_of_many_is_found_and_loaded(sixty: LocalEndpoint, open_page: Open) -> None:
    """An endpoint of 60 models is listed and filtered, and a model is loaded by its first call."""
    page = open_page(sixty)
    expect(page.locator("#endpoints .endpoint")).to_contain_text("60 models")
    page.get_by_label("Filter").fill("_37")
    button = page.get_by_role("button", name="model_37")
    button.click()
    assert page.locator("button.row:visible").count() == 1
    row = page.locator("tr", has=button)
    expect(row.locator(".state")).to_have_text("not loaded")
    page.get_by_label("Numbers").fill(str(np.float32(2.5)))
    send(page)
    assert output(page, "Y") == "3.5"
    expect(row.locator(".state")).to_have_text("ready")
    assert serious_findings(page) == []
