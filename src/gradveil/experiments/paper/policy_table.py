"""Tables of one network under several policies (P, Tables 1, 4 and 5): ours beside the published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, accuracy_of, attack_units, says_diverged, train_units
from gradveil.experiments.paper.experiment import Material
from gradveil.experiments.paper.published import PAIRS, POLICIES, Pair
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL, undefended_arm
from gradveil.experiments.paper.scales import Network, Scale
from gradveil.experiments.paper.text import (
    ABOUT_EXCESS,
    EXCESS,
    write_count,
    write_excess,
    write_interval,
    write_mean,
    write_percent,
    write_psnr,
    write_published,
    write_share,
)
from gradveil.experiments.paper.units import LEARNER, AttackUnit, TrainUnit, Unit, recipe_of
from gradveil.experiments.paper.verdicts import Finding, judge_picked, judge_protection, limit_by_accuracy

NONE, HYBRID = "none", "hybrid"
BASE = "crop-flip"
PUBLISHED_ATTACK = "adam-cosine"
LABELS = {NONE: "no policy"}
FAITHFUL_COLUMNS = ("policy", "P: PSNR / accuracy", "R: PSNR / accuracy", "PSNR", "n", "chance floor", "accuracy, %")
CORRECTED_COLUMNS = (
    *("policy", "attack", "n", "floor, dB", "gain at T(x), dB", "aligned, T(x)", "aligned, x"),
    *("x picked out", EXCESS, "control − policy, dB"),
)


@dataclass(frozen=True)
class PolicyTable:
    """A network, the arms that it is trained under by the name of their line, and the published values."""

    title: str
    network: Network
    arms: Mapping[str, tuple[str, ...]]
    published: Mapping[str, Pair]

    def models(self, label: str, scale: Scale) -> list[TrainUnit]:
        """List the models of a line; "none" was trained with the base augmentation, as in the papers."""
        return [unit for arm in self.arms[label] for unit in train_units(self.network, arm, scale)]

    def attacks(self, label: str, attack: str, quirks: Sequence[str], scale: Scale) -> list[AttackUnit]:
        """List the attacks of a line: on each of its models, what clients of its arm release."""
        told, images = attack != PUBLISHED_ATTACK, scale.learner_images if attack == LEARNER else None
        found: list[AttackUnit] = []
        for model in self.models(label, scale):
            arm = undefended_arm(quirks) if label == NONE else model.arm
            found += attack_units([model], arm, attack, scale, quirks=quirks, images=images, group=images, told=told)
        return found

    def cell(self, label: str, attack: str, quirks: Sequence[str], material: Material) -> Cell:
        return Cell.of(self.attacks(label, attack, quirks, material.scale), material.results)

    def units(self, scale: Scale) -> list[Unit]:
        """List what runs: the published attack first, then the learner and the strongest one."""
        cells = [(label, PUBLISHED_ATTACK, quirks) for quirks in (FAITHFUL, CORRECTED) for label in self.arms]
        others = dict.fromkeys((NONE, HYBRID, *self.arms))
        cells += [(label, attack, CORRECTED) for attack in (LEARNER, scale.strongest) for label in others]
        models = [model for label in self.arms for model in self.models(label, scale)]
        return [*models, *(unit for cell in cells for unit in self.attacks(*cell, scale))]

    def render(self, material: Material) -> list[str]:
        """Write the faithful table, then the corrected one."""
        return [
            f"## {self.title}",
            "",
            describe_network(self.network, material.scale),
            "",
            "As published: the policy's images are cropped and flipped first, those without a policy are not; PSNR "
            "against T(x), ± standard deviation over images.",
            "",
            *write_table(FAITHFUL_COLUMNS, [self.faithful_line(label, material) for label in self.arms]),
            "",
            "Corrected: the control is `crop-flip`. Gains are over the best guess without an update; aligned: after "
            "the best flip, shift and lighting; ± half the 95% interval. `learned`, who inverts updates after learning "
            "on public images, and the strongest gradient matching are told the policy. "
            f"{ABOUT_EXCESS}",
            "",
            *write_table(CORRECTED_COLUMNS, self.corrected_lines(material)),
            "",
        ]

    def faithful_line(self, label: str, material: Material) -> list[str]:
        cell = self.cell(label, PUBLISHED_ATTACK, FAITHFUL, material)
        return [
            name_line(label),
            *write_published(self.published.get(label, {})),
            write_psnr(cell),
            write_count(cell),
            write_mean(cell, "floor_transformed"),
            self.write_accuracy(label, material),
        ]

    def write_accuracy(self, label: str, material: Material) -> str:
        models = self.models(label, material.scale)
        if says_diverged(models, material.results):
            return "training diverged"
        return write_percent(accuracy_of(models, material.results))

    def corrected_lines(self, material: Material) -> list[list[str]]:
        attacks = dict.fromkeys((PUBLISHED_ATTACK, material.scale.strongest, LEARNER))
        return [self.corrected_line(label, attack, material) for attack in attacks for label in self.arms]

    def corrected_line(self, label: str, attack: str, material: Material) -> list[str]:
        cell = self.cell(label, attack, CORRECTED, material)
        control = self.cell(NONE, attack, CORRECTED, material)
        return [
            f"`{BASE}`" if label == NONE else name_line(label),
            f"`{recipe_of(attack)}`",
            write_count(cell),
            write_mean(cell, "floor_transformed"),
            write_interval(cell.interval("gain")),
            write_interval(cell.interval("advantage_transformed")),
            write_interval(cell.interval("advantage_original")),
            write_share(cell, "identified_original"),
            write_excess(cell),
            "" if label == NONE else write_interval(control.less(cell, "excess")),
        ]

    def judge(self, label: str, material: Material) -> Finding:
        """Judge whether a line's policy makes the strongest attack infeasible, and at what cost."""
        attack = material.scale.strongest
        control, cell = (self.cell(name, attack, CORRECTED, material) for name in (NONE, label))
        found = judge_protection(control.interval("excess"), cell.interval("excess"), control.less(cell, "excess"))
        return self.limit(found, label, material)

    def judge_learner(self, label: str, material: Material) -> Finding:
        """Judge whether a line's policy keeps who learns from picking the image out, and at what cost."""
        control, cell = (self.cell(name, LEARNER, CORRECTED, material) for name in (NONE, label))
        before, after = (one.share("identified_original") for one in (control, cell))
        return self.limit(judge_picked(before, after, cell.chance() if after[1] else 0.0), label, material)

    def limit(self, finding: Finding, label: str, material: Material) -> Finding:
        plain, defended = (accuracy_of(self.models(name, material.scale), material.results) for name in (NONE, label))
        return limit_by_accuracy(finding, plain, defended)

    def parts(self, name: str, material: Material) -> list[tuple[str, Finding]]:
        """Judge the hybrid against the strongest gradient matching and against who learns."""
        return [
            (f"{name}, `{recipe_of(material.scale.strongest)}`", self.judge(HYBRID, material)),
            (f"{name}, `{LEARNER}`", self.judge_learner(HYBRID, material)),
        ]


def name_line(label: str) -> str:
    return LABELS.get(label, label)


def describe_network(network: Network, scale: Scale) -> str:
    """Say what is trained and attacked."""
    training = network.training
    share = "" if training.fraction == 1 else f"{100 * training.fraction:g}% of "
    seeds = f"seed {scale.seeds[0]}" if len(scale.seeds) == 1 else f"seeds {scale.seeds[0]} to {scale.seeds[-1]}"
    return (
        f"`{network.model}` on {share}{network.data}, recipe `{training.recipe}`, {training.epochs} epochs, {seeds}; "
        "one gradient of one image, evaluation mode, labels known (a diagnostic)."
    )


def arms_of(policies: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Name the lines of policies and of their hybrid."""
    return {
        NONE: (BASE,),
        **{policy: (f"policy:{policy}",) for policy in policies},
        HYBRID: (f"policy:{'+'.join(policies)}",),
    }


def published_table(letter: str, scale: Scale, published: Mapping[str, Pair]) -> PolicyTable:
    """Make one of P's four tables."""
    plain = arms_of(POLICIES[letter])
    arms = {NONE: plain.pop(NONE), "random": scale.random, **plain}
    return PolicyTable(f"Table 1{letter}: {PAIRS[letter]}", scale.networks[letter], arms, published)
