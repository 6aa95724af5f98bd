"""The Python of the documentation runs as it is printed, at its own size."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import gradveil
from gradveil import data, transforms
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import save_checkpoint

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["attacks.md", "defences.md", "search.md"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert blocks(page)
    names: dict[str, object] = {"__name__": page}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page}, example {number + 1}", "exec"), names)


SMALLER = {
    # What is not on every machine, or takes minutes, becomes what is and does not.
    "data.md": {'"cifar100"': '"fashion-mnist-sample"'},
    "training.md": {'"convnet-16"': '"mlp"', "epochs=2": "epochs=1, fraction=0.2"},
    "audit.md": {"gradveil.audit(model, loader": "gradveil.audit(model, loader, images=2, settings=small"},
}


def make_names(folder: Path) -> dict[str, object]:
    """Make what the fragments of the pages take as given."""
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    model = spec.build(generator(0, "model"))
    images, labels = sample.test.images[:800], sample.test.labels[:800]
    save_checkpoint(folder / "runs" / "train" / "final.safetensors", model.state_dict(), spec, {"phase": "final"})
    return {
        "seed": 0,
        "images": images,
        "labels": labels,
        "mean": (0.5,) * 3,
        "std": (0.2,) * 3,
        "first": 0,
        "last": 1,
        "semi_trained": model,
        "fresh": model,
        "model": model,
        "torch": torch,
        "DataLoader": DataLoader,
        "dataset": TensorDataset(images[:64], labels[:64]),
        "loader": DataLoader(TensorDataset(images[:100].float() / 255, labels[:100]), batch_size=8),
        "small": gradveil.AuditSettings(phases=("init",), steps=5, floor_images=50),
        **{name: getattr(transforms, name) for name in transforms.__all__},
    }


@pytest.mark.slow
@pytest.mark.parametrize("page", ["data.md", "models.md", "scores.md", "training.md", "transforms.md", "audit.md"])
def test_the_fragments_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "train").mkdir(parents=True)
    names = make_names(tmp_path)
    assert blocks(page)
    for number, block in enumerate(blocks(page)):
        for printed, used in SMALLER.get(page, {}).items():
            block = block.replace(printed, used)
        exec(compile(block, f"{page}, example {number + 1}", "exec"), names)


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|png))", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
