"""Figures of an attack."""

import io

import torch
from PIL import Image

from gradveil.reports import draw_losses, draw_paths, draw_similarities, draw_strip
from gradveil.reports.attack_pictures import chosen_layers
from gradveil.rng import generator
from gradveil.types import Reconstruction

IMAGE = torch.rand(1, 1, 8, 8, generator=generator(0, "image"))
NAMES = ("a.weight", "a.bias", "b.weight", "c.weight", "d.weight", "e.weight", "e.bias")


def rebuild(status: str = "ok", losses: tuple[float, ...] = (1.0, 0.1)) -> Reconstruction:
    return Reconstruction(
        IMAGE,
        torch.tensor([1]),
        losses[-1],
        "ok" if status == "ok" else "failed",
        history=tuple(enumerate(losses)),
        similarities=((0, dict.fromkeys(NAMES, 0.1)), (1, dict.fromkeys(NAMES, 0.9))),
        pictures=((0, IMAGE), (1, IMAGE)),
    )


def read(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")


def colours(content: bytes) -> set[tuple[int, ...]]:
    return {colour for _, colour in read(content).getcolors(10**6) or [] if isinstance(colour, tuple)}


def test_a_strip_has_a_row_for_each_image_and_crosses_out_a_failure() -> None:
    truths = [(IMAGE[0], IMAGE[0])] * 2
    whole = draw_strip(truths, [rebuild(), rebuild()])
    failed = draw_strip(truths, [rebuild(), rebuild("failed")])
    assert read(whole).height == 2 * (3 * 8 + 4)
    assert read(whole).size == read(failed).size
    assert (255, 0, 0) not in colours(whole)
    assert (255, 0, 0) in colours(failed)


def test_losses_are_drawn_with_and_without_a_logarithm() -> None:
    logarithmic = draw_losses({"0": rebuild()}, "loss")
    plain = draw_losses({"0": rebuild(losses=(1.0, -0.1))}, "loss")
    empty = draw_losses({"0": rebuild(losses=(1.0,))}, "loss")
    assert read(logarithmic).size == read(plain).size == read(empty).size == (720, 432)
    assert len({logarithmic, plain, empty}) == 3


def test_paths_and_similarities_are_drawn() -> None:
    one = draw_paths({"a": [(0.1, 10.0), (1.0, 20.0)]}, "paths")
    two = draw_paths({"a": [(0.1, 10.0), (1.0, 20.0)], "b": [(0.2, 5.0), (2.0, 9.0)]}, "paths")
    assert one != two
    assert read(draw_similarities(rebuild(), "layers")).size == (720, 432)


def test_the_first_and_the_last_weights_are_chosen() -> None:
    assert chosen_layers(rebuild()) == ["a.weight", "b.weight", "d.weight", "e.weight"]
    assert chosen_layers(Reconstruction(IMAGE, torch.tensor([1]), 0.0)) == []
