import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from gradveil import cli
from gradveil.rng import generator
from gradveil.transforms import CATALOGUE, parse_policy, pillow


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line as the shell would, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gradveil", "transforms", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def make_images(*shape: int) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = torch.randint(256, shape, generator=generator(0, *shape)).to(torch.uint8).numpy()
    return pixels


def read_image(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return image.copy()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of images of several kinds and sizes."""
    place = tmp_path / "in"
    for name, pixels in (
        ("cats/a.png", make_images(9, 8, 3)),
        ("cats/b.bmp", make_images(5, 6)),
        ("c.PNG", make_images(4, 4, 3)),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / name)
    (place / "notes.txt").write_text("not an image")
    return place


def test_catalogue_is_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch) == 0
    printed = capsys.readouterr().out
    rows = [line.replace("│", " ").split() for line in printed.splitlines() if line.startswith("│")]
    assert [row[:3] for row in rows] == [
        [str(i), CATALOGUE[i].operation.name, str(CATALOGUE[i].level)] for i in range(50)
    ]
    assert "±45.3% of the side" in printed
    assert "factor 1 ± 0.333" in printed
    assert "changes nothing" in printed


def test_wide_catalogue_is_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--catalogue", "wide", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["settings"]["catalogue"] == "wide"
    assert record["transforms"][15] == {
        "operation": "brightness",
        "level": 9,
        "magnitude": 0.9,
        "draws_sign": True,
        "function": "brightness:9",
    }


def test_policy_is_shown_step_by_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--policy", "3-1-7+none") == 0
    printed = capsys.readouterr().out
    for text in ("translateX", "contrast", "translateY", "no transformation"):
        assert text in printed
    assert run(monkeypatch, "--policy", "wide/3-1-7", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["settings"] == {"catalogue": "wide", "policy": "wide/3-1-7", "seed": 0}
    assert record["readable"] == "wide/translateX:9 > contrast:6 > translateY:2"
    assert record["draws"] == 8


def test_sheet_has_a_row_for_every_function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    assert run(monkeypatch, "--sheet", str(sheet), "--images", "3", "--quiet") == 0
    picture = read_image(sheet)
    # The original, 27 functions, two identities, and shearX, which the catalogue lacks; each image twice.
    assert picture.height == 31 * (3 * 28 + 4)
    assert picture.width > 6 * 3 * 28
    assert len(picture.convert("L").getcolors() or ()) > 50


def test_policy_sheet_has_a_row_for_every_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second, other = (tmp_path / f"{name}.png" for name in ("first", "second", "other"))
    for sheet, seed in ((first, "1"), (second, "1"), (other, "2")):
        assert run(monkeypatch, "--policy", "3-1-7+43-18", "--sheet", str(sheet), "--seed", seed, "--quiet") == 0
    assert read_image(first).height == 6 * (3 * 28 + 4)
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_folder_is_transformed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    assert run(monkeypatch, "apply", "--policy", "3-1-7+43-18-18", "--seed", "5", str(folder), str(target)) == 0
    assert "3 images" in capsys.readouterr().out
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*.*")) == [
        "c.png",
        "cats/a.png",
        "cats/b.png",
        "transforms.json",
    ]
    for name in ("c.PNG", "cats/a.png", "cats/b.bmp"):
        image = pillow.to_tensor(read_image(folder / name)).unsqueeze(0)
        expected = parse_policy("3-1-7+43-18-18").transform(image, generator(5, "offline", name))
        written = read_image((target / name).with_suffix(".png"))
        assert torch.equal(pillow.to_tensor(written), expected.squeeze(0))
    record = json.loads((target / "transforms.json").read_text())
    assert record["settings"]["policy"] == "3-1-7+43-18-18"
    assert (record["images"], record["other_files"]) == (3, 1)


def test_earlier_results_are_kept_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    for target in (tmp_path / "out", tmp_path / "out.npz"):
        source = folder if target.suffix == "" else tmp_path / "in.npz"
        np.savez(tmp_path / "in.npz", images=make_images(2, 4, 4))
        command = ["apply", "--policy", "0", str(source), str(target), "-q"]
        assert run(monkeypatch, *command) == 0
        assert run(monkeypatch, *command) == 2
        assert "--overwrite" in capsys.readouterr().err
        assert run(monkeypatch, *command, "--overwrite") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "3--1"], "policy '3--1': nothing at character 3 is not an index"),
        (["--policy", ""], "policy '': nothing at character 1 is not an index"),
        (["--policy", "3-1-7-2"], "'2' at character 7 is step 4: a policy has at most 3"),
        (["--catalogue", "v2"], "unknown catalogue 'v2': choose from v1, wide"),
        (["--sheet", "no/such/folder/sheet.png"], "cannot write no/such/folder/sheet.png"),
        (["--sheet", "sheet.png", "--images", "0"], "images '0': give 1 or more"),
        (["apply", "--policy", "3", "nothing-here", "out"], "nothing-here does not exist: give a folder of images"),
        (["apply", "--policy", "3", "in", "in/out"], "in/out is within in: write the copy somewhere else"),
        (["apply", "--policy", "3", "in/notes.txt", "out"], "no .npz file and no idx3-ubyte file"),
        (["apply", "--policy", "3", "empty", "out"], "empty has no images"),
        (["apply", "--policy", "3", "twice", "out"], "would both become a.png: rename one of them"),
        (["apply", "--policy", "3", "tiny", "out"], "1×1 pixels: both sides must be at least 2"),
        (["apply", "--policy", "3", "broken", "out"], "cannot be decoded as an image"),
        (["apply", "--policy", "3", "labels.npz", "out.npz"], "labels.npz: the arrays labels hold no images"),
        (["apply", "--policy", "3", "float.npz", "out.npz"], "float.npz: images are float32 of shape (2, 4, 4)"),
        (["apply", "--policy", "3", "jpeg.npz", "out.npz"], "holds JPEG bytes"),
        (["apply", "--policy", "3", "float.npz", "float.npz", "--overwrite"], "float.npz exists already"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_nonsense_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert folder.is_dir()
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "twice", "tiny", "broken"):
        Path(name).mkdir()
    for name in ("twice/a.png", "twice/a.bmp"):
        Image.new("L", (4, 4)).save(name)
    Image.new("L", (1, 1)).save("tiny/a.png")
    Path("broken/a.png").write_bytes(b"no image")
    np.savez("labels.npz", labels=np.arange(3))
    np.savez("float.npz", images=np.zeros((2, 4, 4), dtype=np.float32))
    np.savez("jpeg.npz", jpeg=np.zeros(5, dtype=np.uint8), offsets=np.arange(3))
    assert run(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("out").exists()
