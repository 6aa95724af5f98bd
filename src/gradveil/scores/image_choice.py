"""Which images of the test split are scored: never those that attacks are tried on."""

from gradveil.data import DataSet, choose_scored
from gradveil.errors import SettingsError

ATTACKED = 200


def choose_privacy_images(data: DataSet, count: int, seed: int) -> list[int]:
    """Choose the positions of `count` test images for S_pri, balanced over the classes.

    Differs from the papers' code, which takes 200, 205, …: where images are stored class by class, these are of one
    class or two.
    """
    free = count_scorable(len(data.test))
    if not 1 <= count <= free:
        raise SettingsError(
            f"{count} images to score: give from 1 to {free}; the other {len(data.test) - free} are for attacks"
        )
    return list(choose_scored(data, count, seed))


def choose_accuracy_images(data: DataSet, seed: int, batch: int = 100, batches: int = 10) -> list[int]:
    """Choose the positions of the test images for S_acc, batch after batch, each balanced over the classes.

    If there are fewer images, as many whole batches as there are.
    """
    free = count_scorable(len(data.test))
    count = min(batches, free // batch)
    if count < 1:
        raise SettingsError(f"a batch of {batch} images for S_acc: there are {free}; give smaller batches")
    chosen = choose_scored(data, count * batch, seed)
    labels = data.test.labels[list(chosen)].tolist()
    by_class = [place for _, place in sorted(zip(labels, chosen, strict=True), key=lambda pair: pair[0])]
    # Dealt out class by class, every batch gets its share of each class.
    return [place for number in range(count) for place in by_class[number::count]]


def count_scorable(total: int) -> int:
    """Count the images that may be scored: all but 200, or a fifth of a small split, which are left for attacks.

    >>> count_scorable(10_000), count_scorable(100)
    (9800, 80)
    """
    return total - min(ATTACKED, total // 5)
