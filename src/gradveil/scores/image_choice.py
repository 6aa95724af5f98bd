"""Which images of the test split are scored: never those that attacks are tried on."""

from gradveil.errors import SettingsError

FIRST = 200
STEP = 5


def choose_privacy_images(total: int, count: int) -> list[int]:
    """Choose `count` of `total` test images for S_pri: 200, 205, … as in the papers' code.

    A split of fewer than a thousand begins after a fifth of it; where fives do not fit, the steps are shorter.

    >>> choose_privacy_images(1000, 4), choose_privacy_images(100, 30)[-1]
    ([200, 205, 210, 215], 78)
    """
    first = first_place(total)
    if not 1 <= count <= total - first:
        raise SettingsError(f"{count} images to score: give from 1 to {total - first}; the first {first} are attacked")
    step = min(STEP, (total - first) // count)
    return [first + step * position for position in range(count)]


def choose_accuracy_images(total: int, batch: int = 100, batches: int = 10) -> list[int]:
    """Choose the test images for S_acc, whole batches: those from 200 on as in the papers' code.

    If there are fewer, as many whole batches as there are.

    >>> len(choose_accuracy_images(1000)), len(choose_accuracy_images(10_000))
    (800, 1000)
    """
    first = first_place(total)
    count = min(batches, (total - first) // batch)
    if count < 1:
        raise SettingsError(f"a batch of {batch} images for S_acc: there are {total - first}; give smaller batches")
    return list(range(first, first + count * batch))


def first_place(total: int) -> int:
    return min(FIRST, total // 5)
