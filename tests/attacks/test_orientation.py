"""Which way round a picture is, where its update cannot tell."""

from dataclasses import replace

import torch

from gradveil.attacks.orientation import orient
from gradveil.types import Reconstruction, Task, Update
from tests.attacks.scenes import make_task, pictures, update_of


def scene(defence: str) -> tuple[Task, Update, Reconstruction]:
    """Make a result that is the true image upside down; the public images are the attacked ones themselves."""
    task = make_task(known=[defence])
    batch = pictures().take(slice(0, 2))
    turned = torch.rot90(batch.pixels(), 2, (2, 3))
    return task, update_of(task, batch, defences=[defence]), Reconstruction(turned, batch.labels, 0.0)


def test_a_picture_that_matches_upside_down_is_turned_to_look_like_its_class() -> None:
    task, update, result = scene("oasis")
    (found,) = orient(task, [update], [result])
    torch.testing.assert_close(found.images, pictures().pixels()[:2])


def test_a_view_that_does_not_match_is_not_taken() -> None:
    """Sheared pictures of an image have other updates."""
    task, update, result = scene("oasis:shear")
    truth = pictures().pixels()[:2]
    (found,) = orient(task, [update], [replace(result, images=truth.clone())])
    assert torch.equal(found.images, truth)


def test_without_views_or_public_images_nothing_is_turned() -> None:
    for defence, change in (("prune:50", {}), ("oasis", {"public": None})):
        task, update, result = scene(defence)
        before = result.images.clone()
        (found,) = orient(replace(task, **change), [update], [result])  # type: ignore[arg-type]
        assert torch.equal(found.images, before)


def test_a_failed_result_is_left_as_it_is() -> None:
    task, update, result = scene("oasis")
    failed = replace(result, status="failed")
    assert orient(task, [update], [failed]) == [failed]
