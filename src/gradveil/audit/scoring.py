"""One row for each image, arm, phase and attack: every score beside its chance floor and its null."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from gradveil.audit.candidates import Candidates, rebuilt_pair
from gradveil.audit.floors import Chance, Floors
from gradveil.audit.jobs import Attacked
from gradveil.metrics import Null, align, limit_of, psnr, ssim, standardise
from gradveil.rng import generator
from gradveil.types import Status

DECIMALS = 6
CROWD = 20
"""An image is picked out of a crowd of so many of its class, itself included."""
PASSED_BY_CHANCE = 0.02
"""The share of images without a leak that pass the limit of their null."""
LEAST_NULL = 9
"""With fewer other images of its class, an image has no control."""


@dataclass(frozen=True)
class Row:
    """The figures of one attacked image; an attack that failed or cannot be used has none but a `reason`.

    That is no evidence of privacy. PSNR, floors and advantages are in dB. `psnr_…` and `floor_…` compare pixel by
    pixel; `aligned_…` and `aligned_floor_…` after the best flip, shift and lighting fit; an `advantage_…` is the
    difference of the aligned ones, for T(x) and for x alike. `image` is the position in its split. `statistic` is the
    larger of the two gains over the mean guess, the score that the null has too; `limit` is what it passes in one case
    of fifty if the image does not leak; `reached` says that it passed that, and the advantage ε; `p_value` is from the
    nulls of all images that are judged together; `hit` that it stays after Holm's correction; `confirmed` that another
    attack seed found it too, where that was tried. `identified` says that of `crowd` images of its class the true one
    fits best; `identified_original` says so of x alone; `rank` is its rank among all `candidates`. `match_rebuilt` and
    `match_truth` are the cosine distances to the released update of what a client would release for the rebuilt and for
    the true picture. `seconds` is the image's share of the time its group took; `approximations` names what the
    attacker's simulation of the client left out.
    """

    arm: str
    phase: str
    attack: str
    image: int
    label: int
    status: Status
    psnr_transformed: float | None = None
    psnr_original: float | None = None
    floor_transformed: float | None = None
    floor_original: float | None = None
    aligned_transformed: float | None = None
    aligned_original: float | None = None
    aligned_floor_transformed: float | None = None
    aligned_floor_original: float | None = None
    advantage_transformed: float | None = None
    advantage_original: float | None = None
    ssim_transformed: float | None = None
    ssim_original: float | None = None
    ssim_floor_transformed: float | None = None
    ssim_floor_original: float | None = None
    statistic: float | None = None
    limit: float | None = None
    reached: bool | None = None
    p_value: float | None = None
    hit: bool = False
    confirmed: bool | None = None
    identified: bool | None = None
    identified_original: bool | None = None
    rank: int | None = None
    crowd: int | None = None
    candidates: int | None = None
    match_rebuilt: float | None = None
    match_truth: float | None = None
    matching_loss: float | None = None
    label_found: bool | None = None
    seconds: float = 0.0
    reason: str = ""
    approximations: tuple[str, ...] = ()

    @property
    def advantage(self) -> float | None:
        """The larger of the two advantages."""
        if self.advantage_transformed is None or self.advantage_original is None:
            return None
        return max(self.advantage_transformed, self.advantage_original)

    def to_record(self) -> dict[str, Any]:
        """Return the row as it stands in JSON."""
        record = {key: round(v, DECIMALS) if isinstance(v, float) else v for key, v in asdict(self).items()}
        return {**record, "approximations": list(self.approximations)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Row":
        """Read a row back from JSON."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in record.items() if key in known}
        return cls(**{**values, "approximations": tuple(record.get("approximations", ()))})


@dataclass(frozen=True, eq=False)
class Cell:
    """One arm, phase and attack: its rows, and the scores of their nulls, one image after the other."""

    arm: str
    phase: str
    attack: str
    rows: tuple[Row, ...]
    null: tuple[float, ...]

    def pairs(self) -> Iterator[tuple[Row, tuple[float, ...]]]:
        """Return every row with its own null: an image is one of its candidates, the others are its null."""
        start = 0
        for row in self.rows:
            end = start + (row.candidates or 1) - 1
            yield row, self.null[start:end]
            start = end


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores what was rebuilt under one arm: `epsilon` dB over chance is what an attack must reach to count."""

    floors: Floors
    candidates: Candidates
    epsilon: float
    labels_known: bool
    seed: int

    def score_cell(self, arm: str, phase: str, attack: str, rounds: Sequence[Sequence[Attacked]]) -> Cell:
        """Score every image of one arm, phase and attack, round by round; p-values come from the null of all."""
        rows: list[Row] = []
        null: list[float] = []
        for attacked in rounds:
            scored, controls = self.score_round(Row(arm, phase, attack, 0, 0, "ok"), attacked)
            rows += scored
            null += join_null(controls)
        return give_p_values([Cell(arm, phase, attack, tuple(rows), tuple(null))])[0]

    def score_round(self, cell: Row, attacked: Sequence[Attacked]) -> tuple[list[Row], list[Tensor]]:
        """Score the images of one round; the second part is the null of each image."""
        rows = [describe(cell, one) for one in attacked]
        if any(row.status != "ok" for row in rows):
            return rows, []
        pairs = [rebuilt_pair(one.reconstruction.images, one.reconstruction.transformed) for one in attacked]
        fed, own = (torch.cat(part) for part in zip(*pairs, strict=True))
        labels = torch.tensor([one.truth.label for one in attacked])
        found = torch.cat([one.reconstruction.labels.cpu()[:1] for one in attacked])
        source = generator(self.seed, "control", cell.arm, cell.phase, cell.attack, attacked[0].truth.image)
        controls = self.candidates.control(fed, own, labels, found, source)
        figures = self.measure(attacked, fed, own)
        return [
            self.compare(replace(row, **one), gained, control)
            for row, (one, gained), control in zip(rows, figures, controls, strict=True)
        ], controls

    def measure(self, attacked: Sequence[Attacked], fed: Tensor, own: Tensor) -> list[tuple[dict[str, Any], Tensor]]:
        """Measure every score and its floor for the images of a round, and the gains over the mean guess."""
        truths = [one.truth for one in attacked]
        targets = {
            "transformed": (fed, torch.cat([truth.transformed for truth in truths]), [one.fed_label for one in truths]),
            "original": (own, torch.cat([truth.original for truth in truths]), [one.label for one in truths]),
        }
        columns: dict[str, Tensor] = {}
        gains = []
        for name, (guess, target, known) in targets.items():
            labels = torch.tensor(known)
            plain, structure, aligned = (getattr(self.floors, f"{name}{kind}") for kind in ("", "_ssim", "_aligned"))
            fill = aligned.fill(labels)

            def answer(chance: Chance, target: Tensor = target, labels: Tensor = labels) -> Tensor:
                return chance.answer(target, labels, truths[0].image, self.labels_known)

            columns[f"psnr_{name}"] = psnr(guess, target)
            columns[f"floor_{name}"] = psnr(answer(plain), target)
            columns[f"ssim_{name}"] = ssim(guess, target)
            columns[f"ssim_floor_{name}"] = ssim(answer(structure), target)
            columns[f"aligned_{name}"] = align(guess, target, fill).psnr
            columns[f"aligned_floor_{name}"] = align(answer(aligned), target, fill).psnr
            gains.append(columns[f"aligned_{name}"] - align(fill, target, fill).psnr)
            columns[f"advantage_{name}"] = columns[f"aligned_{name}"] - columns[f"aligned_floor_{name}"]
        gained = torch.stack(gains, 1)
        return [({key: float(column[at]) for key, column in columns.items()}, gained[at]) for at in range(len(truths))]

    def compare(self, row: Row, gained: Tensor, control: Tensor) -> Row:
        """Compare the gains of an image with those under its null, N×2."""
        score, advantage = float(gained.max()), row.advantage
        if advantage is None or len(control) < LEAST_NULL:
            return replace(row, statistic=score)
        null = control.amax(1)
        limit = limit_of(null.tolist(), PASSED_BY_CHANCE)
        crowd = min(CROWD, len(null) + 1)
        return replace(
            row,
            statistic=score,
            limit=limit,
            reached=advantage >= self.epsilon and score > limit,
            identified=bool((null[: crowd - 1] < score).all()),
            identified_original=bool((control[: crowd - 1, 1] < gained[1]).all()),
            rank=1 + int((null >= score).sum()),
            crowd=crowd,
            candidates=len(null) + 1,
        )


def describe(cell: Row, attacked: Attacked) -> Row:
    """Put down what there is to say of an image besides its scores."""
    truth, result = attacked.truth, attacked.reconstruction
    sound = result.status == "ok"
    return replace(
        cell,
        image=truth.image,
        label=truth.label,
        status=result.status,
        match_rebuilt=attacked.match_rebuilt if sound else None,
        match_truth=attacked.match_truth if sound else None,
        matching_loss=result.matching_loss if sound else None,
        label_found=int(result.labels[0]) == truth.fed_label if sound else None,
        seconds=attacked.seconds,
        reason=result.reason,
        approximations=result.approximations,
    )


def join_null(controls: Sequence[Tensor]) -> list[float]:
    """Put the nulls of several images together, each the larger of the two gains; too short ones are left out."""
    return [value for control in controls if len(control) >= LEAST_NULL for value in control.amax(1).tolist()]


def give_p_values(cells: Sequence[Cell]) -> list[Cell]:
    """Give every image its p-value: the share of all nulls, of all images in all cells, that lie as high or higher.

    A null of 200 scores cannot tell a probability of 1 in 1,000. All nulls together have 200 scores for each image that
    is tested. So the scores that pass the limit for one false finding in so many images can be counted, whatever the
    shape of the nulls is. The images' nulls are brought to a common scale first.
    """
    scaled = [
        [None if row.candidates is None else standardise(row.statistic or 0.0, null) for row, null in cell.pairs()]
        for cell in cells
    ]
    whole = Null.of([value for entries in scaled for entry in entries if entry is not None for value in entry[1]])
    given = []
    for cell, entries in zip(cells, scaled, strict=True):
        rows = [
            row if entry is None else replace(row, p_value=whole.p_value(entry[0]))
            for row, entry in zip(cell.rows, entries, strict=True)
        ]
        given.append(replace(cell, rows=tuple(rows)))
    return given
