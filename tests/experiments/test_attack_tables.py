"""The tables of the attacks, from the journal."""

from dataclasses import replace

from gradveil.experiments.attack_cells import GREY, Cell
from gradveil.experiments.attack_tables import make_lines, make_paths, render_markdown, write_mean
from gradveil.metrics import cluster_interval

CELL = Cell("part", GREY, "lenet", "init", "none", "fast", (0, 1, 2, 3, 4, 5))


def entry(scores: list[float]) -> dict[str, object]:
    rows = [
        {
            "image": image,
            "status": "ok",
            "seconds": 2.0,
            **dict.fromkeys(("psnr_transformed", "advantage_transformed", "ssim_transformed"), score),
            **dict.fromkeys(("psnr_original", "advantage_aligned"), score - 1),
        }
        for image, score in enumerate(scores)
    ]
    return {"cell": CELL.to_record(), "rows": rows, "paths": [[(0.0, 0.0), (1.0, score)] for score in scores]}


def test_a_line_has_every_figure() -> None:
    text = render_markdown({"part": make_lines([CELL], [entry([1.0, 2.0, 3.0, 4.0, 5.0, 12.0])])})
    figures = "4.5 ± 4.1 | +4.5 ± 4.1 (+3.5) | +3.5 ± 4.1 (+2.5) | 3.5 ± 4.1 | 4 · 3 | undecided | 4.50 ± 4.13 | 2.0"
    assert f"| fast | 6 | {figures} |" in text
    text = render_markdown({"part": make_lines([CELL], [entry([9.0, 9.0, 9.0, 10.0, 10.0, 10.0])])})
    assert "| 6 · 6 | leak |" in text


def test_few_images_have_no_interval_and_no_finding() -> None:
    text = render_markdown({"part": make_lines([CELL], [entry([10.0, 20.0])])})
    assert "| fast | 2 of 6 | 15.0 | +15.0 (+15.0) | +14.0 (+14.0) | 14.0 | 2 · 2 | undecided | 15.00 | 2.0 |" in text


def test_what_was_not_run_is_said_so() -> None:
    text = render_markdown({"part": make_lines([CELL, replace(CELL, attack="dlg")], [])})
    assert "Not run: sample lenet init none (fast, dlg)." in text


def test_paths_are_averaged_over_images() -> None:
    path = make_paths([CELL], [entry([10.0, 20.0])])[GREY, "lenet", "init", "none"]["fast"]
    assert path[0] == (0.0, 0.0)
    assert path[-1] == (2.0, 15.0)


def test_a_missing_figure_is_a_dash() -> None:
    assert write_mean(None) == "–"
    assert write_mean(cluster_interval([1.0, 3.0], [0, 0])) == "2.0"
