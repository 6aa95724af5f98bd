"""Batches behind convolutions: features of every image off a linear layer, then images from features.

After the Cocktail Party attack (Kariyappa et al., ICML 2023). Differs from it: where features or slopes are sparse they
are found exactly, not by independence alone; public images tell what pictures such features come from.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor, nn

from gradveil.attacks.analytic import linear_layers
from gradveil.attacks.base import Attack, Progress, make_failure
from gradveil.attacks.feature_pictures import FeatureMap, FeatureMatching, PictureMaker, rehearse
from gradveil.attacks.mixtures import count_at
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.separation import Separated, Separator
from gradveil.attacks.singly import as_one_gradient, attack_singly, conclude
from gradveil.client import Simulation
from gradveil.errors import KnowledgeError
from gradveil.rng import generator as make_generator
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
APPROXIMATE = "the features were told apart by their independence alone: they are approximate"


@final
@dataclass(frozen=True)
class CocktailParty(Attack):
    """Take a linear layer's gradient apart into the features of each image, then find images with such features.

    The layer is the first whose gradient has the rank of the batch. `samples` is that of `Separator`. `search` and the
    same with a pull that does not fade are rehearsed on public images; what is best there is used.
    """

    samples: int = 2**15
    search: FeatureMatching = field(default_factory=FeatureMatching)
    seed: int = 0

    @property
    def needs(self) -> tuple[str, ...]:
        return (
            "the model and the loss",
            "the number of images",
            "a gradient of one step",
            "a linear layer whose gradient has the rank of the batch: at most one image fewer than classes at the last",
            "public images of the same kind, if there are any",
        )

    @property
    def gradients_per_step(self) -> int:
        return 1

    def with_steps(self, steps: int) -> "CocktailParty":
        return replace(self, search=replace(self.search, steps=steps))

    def with_budget(self, gradients: int) -> "CocktailParty":
        return self.with_steps(gradients)

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        names = usable_layers(task)
        for update in updates:
            as_one_gradient(update)
            if not any({f"{name}.weight", f"{name}.bias"} <= set(update.tensors) for name in names):
                raise KnowledgeError("the update has no linear layer's weight and bias: features cannot be read off")

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        party = Party(self, task)
        return attack_singly(updates, generators, party.recover, progress)


class Party:
    """One run of the attack on one task; how pictures are made is rehearsed once for each layer and kind of update."""

    def __init__(self, attack: CocktailParty, task: Task) -> None:
        self.attack, self.task, self.comparison = attack, task, Comparison(task)
        self.layers = usable_layers(task)
        self.makers: dict[object, PictureMaker] = {}

    def recover(self, released: Update, generator: torch.Generator) -> Reconstruction:
        """Recover one batch."""
        ranks = {name: count_at(self.task, released, name) for name in self.layers_of(released)}
        update = as_one_gradient(released)
        layer = next((name for name, rank in ranks.items() if rank == update.images), None)
        if layer is None:
            shown = ", ".join(f"{rank} at '{name}'" for name, rank in ranks.items())
            return make_failure(self.task, update, f"no gradient has the rank of {update.images} images: {shown}")
        found = Separator(self.task, update, layer, self.attack.samples).separate(generator)
        log.info("features of '%s' by %s, error %.1e", layer, found.way, found.error)
        return self.picture(update, layer, found, generator)

    def picture(self, update: Update, layer: str, found: Separated, generator: torch.Generator) -> Reconstruction:
        """Find the images of the features."""
        wanted, maker = found.features.float().to(update.device), self.maker(update, layer)
        if not found.exact and maker.regression is not None:
            # Their lengths are not to be trusted then.
            length = torch.linalg.vector_norm(maker.regression.features, dim=1).median()
            wanted = nn.functional.normalize(wanted) * length
        images = maker(wanted, generator)
        result = conclude(self.comparison, update, images, found.labels.to(update.device), self.attack.search.steps)
        if found.exact:
            return result
        return replace(result, approximations=(*result.approximations, APPROXIMATE))

    def layers_of(self, update: Update) -> list[str]:
        return [name for name in self.layers if {f"{name}.weight", f"{name}.bias"} <= set(update.tensors)]

    def maker(self, update: Update, layer: str) -> PictureMaker:
        """Return how pictures are made for such updates."""
        key = (layer, update.images, update.local)
        if key not in self.makers:
            task, search = self.task, self.attack.search
            model = Simulation(task.model, task.loss, update.local, task.shape).model.requires_grad_(False)
            size = update.images if update.local.mode == "train" else None
            searches = (search, replace(search, last_pull=search.pull))
            source = make_generator(self.attack.seed, "cocktail party", "rehearsal")
            self.makers[key] = rehearse(task, FeatureMap(model, layer, size), searches, source)
        return self.makers[key]


def usable_layers(task: Task) -> list[str]:
    """Name the linear layers with a bias that are fed one row for each image."""
    rows: set[str] = set()
    handles = [
        task.model.get_submodule(name).register_forward_pre_hook(note_rows(name, rows)) for name in linear_layers(task)
    ]
    try:
        with torch.no_grad():
            task.model(torch.zeros(2, *task.shape, device=next(task.model.parameters()).device))
    finally:
        for handle in handles:
            handle.remove()
    if not rows:
        raise KnowledgeError(
            "the model has no linear layer with a bias and one row for each image: nothing to read off"
        )
    return [name for name in linear_layers(task) if name in rows]


def note_rows(name: str, rows: set[str]) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    """Make a hook that notes a layer if two images are two rows there."""

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if inputs[0].dim() == 2 and len(inputs[0]) == 2:
            rows.add(name)

    return note
