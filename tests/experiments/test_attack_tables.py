"""The tables of the attacks, from the journal."""

from gradveil.experiments.attack_cells import GREY, Cell
from gradveil.experiments.attack_tables import make_lines, make_paths, render_markdown, write_figure
from gradveil.metrics import mean_interval

CELL = Cell("part", GREY, "lenet", "init", "none", "fast", (0, 1))


def entry(scores: list[float]) -> dict[str, object]:
    rows = [
        {
            "image": image,
            "status": "ok",
            "seconds": 2.0,
            **dict.fromkeys(("psnr_transformed", "advantage_transformed", "ssim_transformed"), score),
            **dict.fromkeys(("psnr_original", "advantage_original"), score - 1),
        }
        for image, score in enumerate(scores)
    ]
    return {"cell": CELL.to_record(), "rows": rows, "paths": [[(0.0, 0.0), (1.0, score)] for score in scores]}


def test_a_line_has_every_figure_and_names_the_version() -> None:
    text = render_markdown({"part": make_lines([CELL], [entry([10.0, 20.0])])}, "Measured by version 1.")
    assert (
        "| fast | 2 | 15.0 ± 63.5 | +15.0 ± 63.5 | 14.0 ± 63.5 | +14.0 ± 63.5 | +20.0 | 15.00 ± 63.53 | 2.0 |" in text
    )
    assert "Measured by version 1." in text


def test_what_was_not_run_is_said_so() -> None:
    assert "| fast | 0 of 2 | not run |" in render_markdown({"part": make_lines([CELL], [])})


def test_paths_are_averaged_over_images() -> None:
    path = make_paths([CELL], [entry([10.0, 20.0])])[GREY, "lenet", "init", "none"]["fast"]
    assert path[0] == (0.0, 0.0)
    assert path[-1] == (2.0, 15.0)


def test_a_missing_figure_is_a_dash() -> None:
    assert write_figure(None) == "–"
    assert write_figure(mean_interval([1.0, 3.0]), signed=True) == "+2.0 ± 12.7"
