"""The pictures of an audit as a value and as a file."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gradveil.errors import DataError, SettingsError
from gradveil.reports import Frames, Pictures
from gradveil.reports.audit_pictures import hash_pictures, read_pictures, write_pictures
from tests.reports.audit_records import make_pictures, make_record

PLAIN = torch.zeros(2, 1, 3, 3)


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    pictures = make_pictures(make_record())
    full = Pictures(pictures.original, pictures.transformed, pictures.rebuilt, pictures.original, pictures.frames)
    write_pictures(tmp_path / "p.safetensors", full, "seal")
    again, seal = read_pictures(tmp_path / "p.safetensors")
    assert seal == "seal"
    assert hash_pictures(again) == hash_pictures(full) != hash_pictures(pictures)
    assert again.frames[1].steps == full.frames[1].steps
    assert (tmp_path / "p.safetensors").stat().st_mode & 0o777 == 0o600


def test_the_hash_sees_every_value() -> None:
    pictures = make_pictures(make_record())
    changed = pictures.rebuilt.clone()
    changed[3, 0, 0, 0] += 0.001
    other = Pictures(pictures.original, pictures.transformed, changed, None, pictures.frames)
    assert hash_pictures(other) != hash_pictures(pictures)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ((PLAIN, PLAIN, PLAIN[:1]), "rebuilt pictures of shape"),
        ((PLAIN[0], PLAIN[0], PLAIN[0]), "the same R×C×H×W"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(tensors: tuple[torch.Tensor, ...], message: str) -> None:
    original, fed, rebuilt = tensors
    with pytest.raises(SettingsError, match=message):
        Pictures(original, fed, rebuilt)


def test_frames_that_fit_no_row_are_refused() -> None:
    with pytest.raises(SettingsError, match="frames of row 2"):
        Pictures(PLAIN, PLAIN, PLAIN, None, {2: Frames((0,), PLAIN[:1])})
    with pytest.raises(SettingsError, match="2 steps"):
        Frames((0, 1), PLAIN[:1])


def test_files_that_are_no_pictures_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    path.write_bytes(b"no such thing")
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        read_pictures(path)
    save_file({"original": PLAIN}, path)
    with pytest.raises(DataError, match="no transformed, rebuilt pictures"):
        read_pictures(path)
    whole = {name: PLAIN.clone() for name in ("original", "transformed", "rebuilt")}
    for extra in ({"frames/0": PLAIN.clone()}, {"frames/x": PLAIN.clone(), "frame_steps/x": torch.tensor([0, 1])}):
        save_file({**whole, **extra}, path)
        with pytest.raises(DataError, match="does not hold the pictures of an audit"):
            read_pictures(path)
