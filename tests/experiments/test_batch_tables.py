"""The table of batches and local steps."""

from typing import Any

from gradveil.experiments.batch_tables import COLUMNS, make_grid, make_lines, missing, render_markdown
from gradveil.experiments.batches import cells


def entry(attack: str, reached: int | None, batch: int = 8, steps: int | None = None, **cell: str) -> dict[str, Any]:
    figure = {"mean": 3.0, "low": 2.0, "high": 4.0}
    sound = reached is not None
    return {
        "cell": {
            "model": "lenet-relu",
            "phase": "final",
            "mode": "eval",
            **cell,
            "batch": batch,
            "steps": steps,
            "attack": attack,
            "images": 32,
        },
        "study": {"data": "some", "training": {"epochs": 3}},
        "test_accuracy": 0.84,
        "counted": [8, 6, 8, 8],
        "summary": {
            "images": 32,
            "failed": 0 if sound else 32,
            "share": {"reached": reached} if sound else None,
            "figures": {"advantage_transformed": figure, "psnr_transformed": figure} if sound else {},
            "identification": {"found": 5, "images": 32} if sound else None,
        },
        "refused": "",
        "failed": "" if sound else "no rank",
    }


def test_the_best_attack_of_an_update_comes_first_and_a_failure_last() -> None:
    lines = make_lines([entry("fast", 10), entry("spear", None), entry("cocktail-party", 32)])
    (line,) = lines
    texts = dict(zip(COLUMNS, line.texts(), strict=True))
    assert texts["best attack"] == "`cocktail-party`"
    assert texts["rebuilt beyond chance"] == "32 of 32"
    assert texts["the others"] == "`fast` 10 of 32, `spear` fails"
    assert texts["counted off it"] == "6–8"
    assert texts["advantage at T(x), dB"] == "+3.0 ± 1.0"
    assert texts["mode"] == "either"


def test_images_are_counted_off_gradients_only() -> None:
    (line,) = make_lines([entry("fast", 10, 8, 5)])
    assert dict(zip(COLUMNS, line.texts(), strict=True))["counted off it"] == "–"


def test_without_a_result_there_is_no_best_attack() -> None:
    (line,) = make_lines([entry("cocktail-party", None, 16)])
    texts = dict(zip(COLUMNS, line.texts(), strict=True))
    assert (texts["best attack"], texts["rebuilt beyond chance"]) == ("none", "fails")
    assert texts["n"] == "32, 32 failed"


def test_gradients_come_before_steps_and_the_untrained_before_the_trained() -> None:
    entries = [entry("fast", 1, 8, 5), entry("fast", 1, 16), entry("fast", 1, 2), entry("fast", 1, 2, phase="init")]
    places = [line.place[1:2] + line.place[3:] for line in make_lines(entries)]
    assert places == [("init", 2, 0), ("final", 2, 0), ("final", 16, 0), ("final", 8, 5)]


def test_what_was_not_run_is_named() -> None:
    entries = [entry("fast", 1)]
    lacking = "\n".join(missing(entries))
    assert "`fast` on lenet-relu, trained, eval mode: 8 in 1 step, 8 in 5 steps" in lacking
    every = [{**entry(one.attack, 1), "cell": one.to_record()} for one in cells()]
    assert list(missing(every)) == []
    text = render_markdown(make_lines(entries), entries)
    assert "Not run:" in text
    _, table = (block.splitlines() for block in text.split("\n\n") if block.startswith("|"))
    assert all(line.count("|") == len(COLUMNS) + 1 for line in table)


def test_at_a_glance_a_network_has_one_row_for_all_kinds_of_update() -> None:
    entries = [
        *(entry("fast", 10, batch) for batch in (8, 2)),
        entry("fast", 7, 8, 5),
        entry("spear", 12, 8),
        entry("fast", None, 2, phase="init"),
    ]
    columns, (before, after) = make_grid(make_lines(entries))
    assert columns == ["model", "mode", "phase", "2", "8", "8, 5 steps"]
    assert before[2:] == ["untrained", "fails", "not run", "not run"]
    assert after[2:] == ["trained, 84%", "10 by `fast`", "12 by `spear`", "7 by `fast`"]
