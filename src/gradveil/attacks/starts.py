"""Where a search for images begins; each start gives B×C×H×W in normalised space."""

from collections.abc import Callable

import torch
from torch import Tensor

from gradveil.errors import KnowledgeError
from gradveil.types import Batch, Task

Start = Callable[[Task, Tensor, torch.Generator], Tensor]
"""Takes the task, the labels B of the images wanted, and a generator."""

FAINT = 0.1


def normal(task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Draw standard normal noise, as the papers do."""
    return torch.randn(len(labels), *task.shape, generator=generator, device=generator.device).to(labels.device)


def zeros(task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Begin at the mean colour, with a trace of noise: a flat image has no slope in some networks."""
    return FAINT * normal(task, labels, generator)


def class_mean(task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Begin at the mean of the public images of the class; of all of them if the class has none."""
    public = normalised(task)
    means = [public[chosen].mean(0) for chosen in (of_class(task, label) for label in labels)]
    return torch.stack(means) + FAINT * normal(task, labels, generator)


def public_image(task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Begin at a public image of the class, drawn at random; at any of them if the class has none."""
    public = normalised(task)
    chosen = [of_class(task, label) for label in labels]
    picks = [rows[torch.randint(len(rows), (), generator=generator).to(rows.device)] for rows in chosen]
    return public[torch.stack(picks)].clone()


def best_guess(task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Begin at the mean of the class if there are public images, at the mean colour otherwise."""
    return (zeros if task.public is None else class_mean)(task, labels, generator)


def of_class(task: Task, label: Tensor) -> Tensor:
    rows = (knowledge(task).labels == label).nonzero().flatten()
    return rows if len(rows) else torch.arange(len(knowledge(task)), device=rows.device)


def normalised(task: Task) -> Tensor:
    pixels = knowledge(task).pixels()
    mean, std = (pixels.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
    return (pixels - mean) / std


def knowledge(task: Task) -> Batch:
    if task.public is None or len(task.public) == 0:
        raise KnowledgeError("this attack starts from public images and the task has none: give it some")
    return task.public


STARTS: dict[str, Start] = {
    "normal": normal,
    "zeros": zeros,
    "class-mean": class_mean,
    "public-image": public_image,
    "best-guess": best_guess,
}
KNOWING = ("class-mean", "public-image")
