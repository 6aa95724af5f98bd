"""What the attacker makes use of beyond the update itself: labels, policies, the strength of noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.labels import check_labels, find_labels
from gradveil.attacks.observation import AssumedDraws
from gradveil.defences import known_deviation, known_policies
from gradveil.errors import KnowledgeError
from gradveil.transforms import PolicyDraws, PolicySet
from gradveil.types import Task, Update


@final
@dataclass(frozen=True)
class Knowledge:
    """What an attack uses.

    Without `labels`, given or read from the gradient, they are searched for together with the images. With `policy`
    the original image is searched for, through each draw of the policies that the task names. With `noise` the total
    variation has the weight that makes the image the most likely one, given how strong the task says the noise is.
    """

    labels: bool = True
    policy: bool = False
    noise: bool = False

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        """Raise KnowledgeError if the task or an update lacks something that is used."""
        if self.policy and known_policies(task.known_defences) is None:
            raise KnowledgeError("this attack looks through a policy and the task names none as known")
        if self.noise and any(
            known_deviation(task.known_defences, update.images, task.participants) == 0 for update in updates
        ):
            raise KnowledgeError("this attack allows for noise and the task names none of known strength")
        for update in updates:
            if self.labels:
                check_labels(task, update)

    def policies(self, task: Task) -> PolicySet | None:
        """Return the policies to look through."""
        return known_policies(task.known_defences) if self.policy else None

    def count_draws(self, task: Task) -> int:
        """Count the runs that every restart needs: one for each draw of the policies."""
        policies = self.policies(task)
        return 1 if policies is None else len(policies.draws())

    def assume_draws(self, task: Task, images: int, sources: Sequence[torch.Generator]) -> AssumedDraws | None:
        """Choose the draw that each run looks through: for one image all in turn, for a batch random ones."""
        policies = self.policies(task)
        if policies is None:
            return None
        if images == 1:
            every = policies.draws()
            return AssumedDraws(policies, every.take(torch.arange(len(sources)) % len(every)), 1)
        return AssumedDraws(policies, PolicyDraws.join([policies.sample(images, source) for source in sources]), images)

    def start_labels(self, task: Task, update: Update) -> Tensor:
        """Find the labels, or, if they are searched for, stand-ins of the right number."""
        if self.labels:
            return find_labels(task, update)
        return torch.zeros(update.images, dtype=torch.int64, device=update.device)


def draw_logits(task: Task, labels: Tensor, sources: Sequence[torch.Generator]) -> Tensor:
    """Draw label logits to start from, T×B×classes, as Zhu et al. (2019) do; `labels`, T×B, tells shape and device."""
    shape = (labels.shape[1], task.classes)
    logits = [torch.randn(shape, generator=source, device=source.device) for source in sources]
    return torch.stack(logits).to(labels.device)
