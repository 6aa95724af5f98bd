"""Which attack wins where, image by image."""

from gradveil.experiments.attack_cells import GREY
from gradveil.experiments.attack_comparisons import gains, paired, winners
from gradveil.experiments.attack_tables import AttackLine


def line(attack: str, scores: dict[int, float | None], seconds: float = 1.0) -> AttackLine:
    """Make the line of an attack with these advantages; None is a failed image."""
    rows = [
        {
            "image": image,
            "status": "failed" if score is None else "ok",
            "psnr_transformed": score,
            "advantage_transformed": score,
            "seconds": seconds,
        }
        for image, score in scores.items()
    ]
    return AttackLine(("part", GREY, "lenet", "init", "none", attack), tuple(rows), len(rows))


def test_attacks_are_compared_on_the_images_that_both_have() -> None:
    slow = line("slow", {image: 10.0 * image for image in range(9)}, 8.0)
    quick = line("quick", {**{image: 10.0 * image + 1 + image % 2 for image in range(8)}, 8: None}, 2.0)
    (row,) = gains([slow, quick], ("slow", ["quick", "missing"], "psnr_transformed"))
    assert row[-4:] == ["+1.5 ± 0.4, more", "+1.5", "8", "0.25"]
    few = line("quick", {0: 1.0, 1: 13.0}, 2.0)
    (row,) = gains([slow, few], ("slow", ["quick"], "psnr_transformed"))
    assert row[-4:] == ["+2.0", "+2.0", "2", "0.25"]
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_the_winner_is_the_best_on_shared_images() -> None:
    lines = [line("many", {0: 1.0, 1: 3.0, 2: 50.0}), line("few", {0: 4.0, 1: 4.0}), line("weak", {0: 0.0, 1: 0.0})]
    (row,) = winners(lines, ["many"])
    assert row[3:] == ["`many`", "+18.0 (+3.0)", "3", "`few`", "+4.0 (+4.0)", "`many` +2.0 (+2.0)", "2"]
    assert list(winners([line("failed", {0: None})], ["failed"])) == []
