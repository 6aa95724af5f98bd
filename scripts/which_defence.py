"""Print the table of docs/which-defence.md from the committed journals; with `--write` put it into the page."""

import sys
from dataclasses import dataclass
from pathlib import Path

from gradveil.experiments.markdown import write_table
from scripts import defence_figures as figures

PAGE = Path(__file__).parents[1] / "docs" / "which-defence.md"
START, END = "<!-- which-defence: begin -->", "<!-- which-defence: end -->"
COLUMNS = ("goal", "defence", "accuracy", "what was found (n)", "caveat")
HYBRID = "policy:3-1-7+43-18-18"
PRIVATE, NOISE = "dpsgd:noise=1.1:clip=1", "gaussian:1e-2"
WEAK = "dpsgd:noise=0.3:clip=1"
CHEAP = 10
"""Points of accuracy below which a defence counts as cheap."""


@dataclass(frozen=True)
class Choice:
    """One line of the table."""

    goal: str
    defence: str
    accuracy: str
    found: str
    caveat: str

    def texts(self) -> tuple[str, ...]:
        return self.goal, self.defence, self.accuracy, self.found, self.caveat


def bounded() -> list[Choice]:
    """A promise that does not depend on the attack."""
    return [
        Choice(
            "a bound that holds against any attack",
            f"`{PRIVATE}`",
            figures.cost(PRIVATE),
            f"{figures.rounds('FedSGD, 1 image', PRIVATE)}; {figures.promise(PRIVATE)}",
            "Undecided is not a finding of privacy; what holds is the bound. Weaker noise "
            f"(`{WEAK}`, {figures.accuracy_of(WEAK)}) has next to none: {figures.promise(WEAK)}. On CIFAR-100 it "
            f"learnt nothing ({figures.accuracy_of(PRIVATE, 'colour')}, one seed).",
        ),
        Choice(
            "single updates out of the server's sight",
            "`federate --secure`",
            "not measured; the mean is the plain one up to rounding",
            figures.rounds("SecAgg, mean of 10 × 4 images", "none"),
            "Images are reached in the mean as well. Flower's masks are [weaker than they "
            "look](decentralised.md#secure-aggregation).",
        ),
    ]


def noisy() -> list[Choice]:
    """Changes of the update."""
    return [
        Choice(
            "less to see in an update, most of the accuracy kept",
            f"`{NOISE}`",
            figures.cost(NOISE),
            f"{figures.reached(NOISE)}; {figures.rounds('FedSGD, 1 image', NOISE)}",
            "It hides more before training than after it.",
        ),
        Choice(
            "to stop updates that an attack can read",
            "`clip:1,gaussian:3e-2` with [`GateMod`](flower-mods.md)",
            "not measured",
            figures.refused("clip:1,gaussian:3e-2"),
            "Three short attacks judged it. The noise is several times as long as the update, so a round learns only "
            "from many clients.",
        ),
        Choice(
            "short updates",
            "`prune:99`",
            figures.cost("prune:99"),
            figures.reached("prune:99"),
            f"`sign`: {figures.finding('sign')}. `quantise:2`: {figures.finding('quantise:2')}. `topk:1`: "
            f"{figures.finding('topk:1')}.",
        ),
        Choice(
            "a filter that the framework has",
            "`percentile` (NVFlare's defaults)",
            figures.told_accuracy("percentile,no-base"),
            figures.told("percentile,no-base", "learned"),
            f"Without a defence {figures.told('none', 'learned')}. `clip:1`: {figures.finding('clip:1')}.",
        ),
    ]


def pictured() -> list[Choice]:
    """Changes of the images."""
    return [
        Choice(
            "the original hidden, at any cost",
            "`policy:3-1-7`",
            figures.hide_accuracy("policy:3-1-7"),
            f"{figures.picked('policy:3-1-7', 'learned')}; {figures.picked('policy:3-1-7', 'both')}; chance 5%; "
            f"`crop-flip` alone: {figures.picked('crop-flip', 'learned')}",
            "It leaves less to see than crop and flip alone, and does not hide the original from someone who knows it. "
            "The network hardly learns.",
        ),
        Choice(
            "the original hidden, most of the accuracy kept",
            f"`{HYBRID}`",
            figures.cost(HYBRID),
            f"what is fed: {figures.reached(HYBRID)}; the original: {figures.audited(HYBRID)}; chance 5%",
            "What the model is fed is rebuilt. Without crop and flip under it "
            f"{figures.picked(f'{HYBRID},no-base', 'learned', 'policies-hide-1')}.",
        ),
        Choice(
            "images mixed with others",
            "`mixup:8`",
            figures.cost("mixup:8"),
            figures.finding("mixup:8"),
            "The mixture is what is rebuilt. `instahide:4`: accuracy "
            f"{figures.accuracy_of('instahide:4')}; {figures.finding('instahide:4')}.",
        ),
        Choice(
            "a server that tampers with the model",
            "`oasis`",
            figures.told_accuracy("oasis,no-base"),
            figures.told("oasis,no-base", "fast"),
            f"Not told of it, {figures.told('oasis,no-base', 'fast', False)}. This attacker looks on and does not "
            "tamper; see [`gradveil inspect`](inspect.md) for one that does.",
        ),
    ]


def structural() -> list[Choice]:
    """Changes of the model, and of what a client sends."""
    return [
        Choice(
            "a defence inside the model",
            "`precode:width=64`",
            figures.cost("precode:width=64"),
            figures.finding("precode:width=64"),
            f"For one image its draw can be read off. `soteria:40`: {figures.finding('soteria:40')}.",
        ),
        Choice(
            "no defence, larger batches",
            "`none`, 8 images in an update",
            "not measured",
            f"`cocktail-party` rebuilds {figures.batch('cocktail-party', 'lenet-relu')}, "
            f"{figures.batch('cocktail-party', 'convnet-16')}",
            "After training, evaluation mode, labels known.",
        ),
        Choice(
            "no defence, several local steps",
            "`none`, FedAvg",
            f"{figures.together('FedAvg')}; FedSGD {figures.together('FedSGD')}; 1 seed, other client settings",
            figures.rounds("FedAvg, 5 steps of 8 images", "none"),
            "The attack converges badly there: this shows little, and nothing about privacy.",
        ),
    ]


def make_table() -> list[str]:
    """Make the lines of the table."""
    choices = [*bounded(), *noisy(), *pictured(), *structural()]
    return write_table(COLUMNS, [choice.texts() for choice in choices])


def replace_block(text: str, lines: list[str]) -> str:
    """Put lines between the page's markers."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return "\n".join([f"{before}{START}", "", *lines, "", f"{END}{after}"])


def make_reading() -> list[str]:
    """Say in two sentences what the table shows; a test holds the first against the journals."""
    price = f"{figures.points(PRIVATE):.0f} points of accuracy"
    return [
        "**No defence here is both cheap and quiet**: everything measured that costs less than "
        f"{CHEAP} points of accuracy leaked, before training or after it.",
        f"DP-SGD is the only line without an image that was reached, and the only one with a bound; it costs {price}.",
    ]


def make_block() -> list[str]:
    """Make what stands between the page's markers."""
    return ['<div class="stacked" markdown>', "", *make_table(), "", "</div>", "", *make_reading()]


def main() -> None:
    """Print the table and its reading, or put them into the page."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(replace_block(PAGE.read_text(), make_block()))
    else:
        print("\n".join(make_block()))


if __name__ == "__main__":
    main()
