"""A folder of an audit: written, read back, and checked."""

import json
from pathlib import Path

import pytest

from gradveil.errors import DataError
from gradveil.reports import Pictures, read_audit, render_audit, verify_audit, write_audit
from gradveil.reports.audit_files import GRID_COLUMNS, name_grid
from gradveil.reports.audit_pictures import hash_pictures, write_pictures
from gradveil.reports.audit_record import make_cells
from gradveil.results import SEAL, read_sealed, seal, to_json
from tests.reports.audit_records import CELLS, LONG, SCRIPT, make_pictures, make_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record = make_record()
    write_audit(tmp_path, record, make_pictures(record))
    return tmp_path


def test_what_is_written_is_read_back(folder: Path) -> None:
    record, pictures = read_audit(folder)
    assert pictures is not None
    assert hash_pictures(pictures) == hash_pictures(make_pictures(make_record())) == record["pictures_sha256"]
    assert record == read_sealed(folder / "audit.json")
    assert {key: record[key] for key in record if key not in ("pictures_sha256", SEAL)} == {
        key: value for key, value in make_record().items() if key != SEAL
    }
    assert (folder / "report.html").read_text() == render_audit(record, pictures)
    assert (folder / "audit.csv").read_text().count("\n") == 49
    assert verify_audit(folder).endswith(record[SEAL])


def test_files_with_pictures_are_for_their_owner_only(folder: Path) -> None:
    private = [folder / "pictures.safetensors", folder / "report.html", *(folder / "pictures").iterdir()]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    assert (folder / "audit.json").stat().st_mode & 0o777 == 0o644


def test_grids_have_safe_and_different_names(tmp_path: Path) -> None:
    record = make_record(
        cells=(*CELLS[:2], (SCRIPT, "init", "some"), (LONG, "init", "some"), (LONG + "x", "init", "some"))
    )
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "stale.png").touch()
    write_audit(tmp_path, record, make_pictures(record))
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == sorted(name_grid(cell) for cell in make_cells(record))
    assert len(set(names)) == 5
    assert all(len(name) < 100 and "/" not in name and "<" not in name for name in names)


def test_a_grid_of_many_images_stays_small(tmp_path: Path) -> None:
    from PIL import Image

    record = make_record(images=200, cells=CELLS[:1])
    write_audit(tmp_path, record, make_pictures(record))
    with Image.open(next((tmp_path / "pictures").iterdir())) as grid:
        assert grid.width < 100 + GRID_COLUMNS * 40


def test_pictures_that_fit_no_rows_are_refused(tmp_path: Path) -> None:
    few = make_pictures(make_record(images=2))
    with pytest.raises(DataError, match="16 pictures for 48 rows"):
        write_audit(tmp_path, make_record(), few)
    assert not list(tmp_path.iterdir())


def test_the_page_can_do_without_removed_pictures(folder: Path) -> None:
    (folder / "pictures.safetensors").unlink()
    record, pictures = read_audit(folder)
    assert pictures is None
    assert "has no pictures" in render_audit(record, pictures)
    assert "pictures.safetensors not there" in verify_audit(folder)


def test_a_changed_record_does_not_hold(folder: Path) -> None:
    path = folder / "audit.json"
    path.write_text(path.read_text().replace('"outcome": "leaks"', '"outcome": "none-found"', 1))
    with pytest.raises(DataError, match="was changed or damaged"):
        verify_audit(folder)


def test_a_record_that_was_sealed_anew_does_not_fit_its_page_and_pictures(folder: Path) -> None:
    record = json.loads((folder / "audit.json").read_text())
    (folder / "audit.json").write_text(to_json(seal({**record, "verdict": "All is well."})))
    with pytest.raises(DataError, match=r"pictures\.safetensors belongs to another"):
        verify_audit(folder)
    (folder / "pictures.safetensors").unlink()
    with pytest.raises(DataError, match="does not show this"):
        verify_audit(folder)


def test_a_changed_page_does_not_hold(folder: Path) -> None:
    page = folder / "report.html"
    source = page.read_text()
    page.write_text(source.replace("some images leak", "no images leak"))
    with pytest.raises(DataError, match="was changed after it was written: draw it again with gradveil report"):
        verify_audit(folder)
    page.write_bytes(source.encode().replace(b"\n", b"\r\n"))
    with pytest.raises(DataError, match="was changed"):
        verify_audit(folder)
    page.unlink()
    with pytest.raises(DataError, match="cannot be read as a page"):
        verify_audit(folder)


def test_changed_pictures_and_tables_do_not_hold(folder: Path) -> None:
    record, pictures = read_audit(folder)
    assert pictures is not None
    brighter = Pictures(pictures.original, pictures.transformed, (pictures.rebuilt + 0.1), None, pictures.frames)
    write_pictures(folder / "pictures.safetensors", brighter, record[SEAL])
    with pytest.raises(DataError, match=r"pictures\.safetensors was changed"):
        verify_audit(folder)
    write_pictures(folder / "pictures.safetensors", pictures, record[SEAL])
    (folder / "audit.csv").write_text("arm\nnone\n")
    with pytest.raises(DataError, match="is not the table of"):
        verify_audit(folder)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no audit\.json"):
        read_audit(tmp_path)
    (tmp_path / "audit.json").write_text(to_json(seal({"command": "audit", "capsules": []})))
    with pytest.raises(DataError, match=r"audit\.json is no record of an audit"):
        read_audit(tmp_path)
