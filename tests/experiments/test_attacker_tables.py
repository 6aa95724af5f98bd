"""The tables of how strong `standard` is."""

from typing import Any

from gradveil.experiments.attacker_tables import Ran, by_place, compare, render_markdown, render_pairs, word
from gradveil.experiments.attackers import Cell
from gradveil.experiments.versions import PRESENT


def entry(attacker: str, gains: list[float], seconds: float, failed: int = 0) -> dict[str, Any]:
    """Make a line of the journal whose images gain so much over a chance of 10 dB; the last ones failed."""
    rows: list[dict[str, Any]] = [
        {
            "image": image,
            "label": 0,
            "status": "ok" if image < len(gains) - failed else "failed",
            "reason": "",
            "matching_loss": 0.1,
            "psnr_transformed": 10 + gain,
            "floor_transformed": 10.0,
            "aligned_original": 12 + gain,
            "aligned_floor_original": 12.0,
            "identified_original": gain > 2,
            "crowd": 20,
            "statistic": gain,
            "control": -1.0,
        }
        for image, gain in enumerate(gains)
    ]
    cell = Cell(
        "modern",
        "colour",
        "convnet-16",
        "none",
        "final",
        1,
        attacker,
        len(gains),
        gradients=0 if attacker == "standard" else 9,
    )
    return {
        "cell": cell.to_record(),
        "study": {"data": "some", **PRESENT},
        "gradients": 9,
        "processor_seconds": seconds,
        "test_accuracy": 0.7,
        "rows": rows,
    }


OURS = entry("standard", [3.0, 2.0, 4.0, 3.0, 2.0, 4.0], 2.0)
THEIRS = entry("modern", [1.0, 1.0, 2.0, 1.0, 0.0, 3.0], 4.0)


def test_differences_are_image_by_image_and_say_whether_they_are_shown() -> None:
    ours, theirs = Ran.of(OURS), Ran.of(THEIRS)
    found = compare(ours, theirs, "transformed")
    assert found is not None
    assert found.mean == 10 / 6
    assert word(found).endswith(", more")
    assert word(compare(theirs, ours, "transformed")).endswith(", less")
    assert word(compare(ours, ours, "original")).endswith(", not shown")
    assert word(None) == "–"


def test_a_failed_image_is_counted_and_not_scored() -> None:
    failed = Ran.of(entry("modern", [1.0] * 8, 4.0, failed=2))
    assert len(failed.scores["transformed"]) == 6
    assert "6 of 8" in render_markdown([OURS, failed.entry])


def test_wrong_updates_stand_beside_every_attacker_or_a_dash() -> None:
    ran = Ran.of(THEIRS)
    assert ran.mean("excess").startswith("+2.3 ± ")
    assert ran.picked_out() == "1 of 6 (0–64%)"
    old = [{key: row[key] for key in row if key not in ("control", "identified_original")} for row in THEIRS["rows"]]
    before = Ran.of({**THEIRS, "rows": old})
    assert (before.mean("excess"), before.picked_out()) == ("–", "–")


def test_few_images_have_no_interval() -> None:
    few = [Ran.of(entry(name, [value] * 3, 1.0)) for name, value in (("standard", 2.0), ("modern", 1.0))]
    assert word(compare(few[0], few[1], "transformed")) == "+1.0"


def test_the_page_names_time_accuracy_and_version() -> None:
    places = by_place([Ran.of(OURS), Ran.of(THEIRS)], "modern")
    assert render_pairs(places)[-1].endswith("| 0.50 |")
    page = render_markdown([OURS, THEIRS])
    assert "70.0" in page
    assert f"version {PRESENT['standard_version']}" in page
    assert "its earlier versions" not in page
    assert "| standard |" in page
