"""The published numbers, each typed once, with where it stands.

P is Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search" (CVPR 2021); R is
Drabent et al., its replication (ReScience C, 2022). Both give PSNR in dB against T(x) and accuracy in %; R gives the
standard deviation over 6 images as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

P, R = "P", "R"
NAMES = {P: "Gao et al. (2021)", R: "Drabent et al. (2022)"}


@dataclass(frozen=True)
class Value:
    """One published cell: PSNR, its standard deviation over images, and accuracy, as far as they are given."""

    source: str
    psnr: float | None
    accuracy: float | None = None
    spread: float | None = None

    def text(self) -> str:
        """Write the cell as it is printed.

        >>> Value("R, Table 1a", 12.15, 78.11, 2.06).text()
        '12.15 ± 2.06 / 78.11'
        """
        shown = "" if self.psnr is None else f"{self.psnr:g}" + ("" if self.spread is None else f" ± {self.spread:.2f}")
        return shown if self.accuracy is None else f"{shown} / {self.accuracy:g}".removeprefix(" / ")


Pair = Mapping[str, Value]
"""The values of one cell by paper."""


def pair(table: str, ours: tuple[float, float | None], theirs: tuple[float, float, float | None] | None) -> Pair:
    """Put both papers' values of a cell together: P's PSNR and accuracy, R's PSNR, deviation and accuracy."""
    tables = table.split("|")
    found = {P: Value(f"P, {tables[0]}", *ours)}
    if theirs is not None:
        found[R] = Value(f"R, {tables[-1]}", theirs[0], theirs[2], theirs[1])
    return found


RANDOM = "19-1-18"
"""R's random policy; P has the mean of ten that it does not name."""
POLICIES: dict[str, tuple[str, str]] = {
    "a": ("3-1-7", "43-18-18"),
    "b": ("21-13-3", "7-4-15"),
    "c": ("19-15-45", "2-43-21"),
    "d": ("42-28-42", "14-48-48"),
}
"""P, Table 1: the two policies that were searched for each data set and network; the hybrid draws one of them."""
PAIRS = {
    "a": "CIFAR-100 with ResNet20",
    "b": "CIFAR-100 with ConvNet",
    "c": "Fashion-MNIST with ResNet20",
    "d": "Fashion-MNIST with ConvNet",
}

TABLE_1: dict[str, dict[str, Pair]] = {
    "a": {
        "none": pair("Table 1a", (13.88, 76.88), (12.15, 2.06, 78.11)),
        "random": pair("Table 1a", (11.41, 73.94), (9.92, 1.93, 75.02)),
        "3-1-7": pair("Table 1a", (6.579, 70.56), (6.77, 0.88, 71.59)),
        "43-18-18": pair("Table 1a", (8.56, 77.27), (9.34, 1.81, 77.16)),
        "hybrid": pair("Table 1a", (7.64, 77.92), (8.25, 1.64, 77.47)),
    },
    "b": {
        "none": pair("Table 1b", (13.07, 70.13), (11.44, 2.93, 72.97)),
        "random": pair("Table 1b", (12.18, 69.91), (10.29, 1.02, 71.93)),
        "21-13-3": pair("Table 1b", (5.76, 66.98), (8.23, 2.18, 63.26)),
        "7-4-15": pair("Table 1b", (7.75, 69.67), (10.31, 2.14, 70.77)),
        "hybrid": pair("Table 1b", (6.83, 70.27), (9.89, 1.47, 68.91)),
    },
    "c": {
        "none": pair("Table 1c", (10.04, 95.03), (9.81, 4.41, 95.19)),
        "random": pair("Table 1c", (9.23, 91.16), (10.06, 2.04, 95.19)),
        "19-15-45": pair("Table 1c", (7.01, 91.33), (8.26, 0.37, 92.44)),
        "2-43-21": pair("Table 1c", (7.75, 89.41), (8.93, 2.93, 93.93)),
        "hybrid": pair("Table 1c", (7.60, 92.23), (8.41, 1.45, 95.14)),
    },
    "d": {
        "none": pair("Table 1d", (9.12, 94.25), (9.52, 3.27, 94.61)),
        "random": pair("Table 1d", (8.83, 90.18), (9.47, 2.27, 94.47)),
        "42-28-42": pair("Table 1d", (7.01, 91.33), (7.59, 0.89, 94.62)),
        "14-48-48": pair("Table 1d", (6.75, 90.56), (8.41, 2.10, 94.68)),
        "hybrid": pair("Table 1d", (6.94, 91.35), (6.80, 0.98, 94.59)),
    },
}

ATTACKS: dict[str, str] = {
    "lbfgs-l2": "LBFGS+L2",
    "adam-cosine": "Adam+Cosine",
    "lbfgs-cosine": "LBFGS+Cosine",
    "adam-l1": "Adam+L1",
    "adam-l2": "Adam+L2",
    "sgd-cosine": "SGD+Cosine",
}
"""Our names of the six attacks of Table 2, and theirs."""
TABLE_2: dict[str, dict[str, Pair]] = {
    attack: {
        "none": pair("Table 2", (none, None), (*other_none, None)),
        "hybrid": pair("Table 2", (hybrid, None), (*other_hybrid, None)),
    }
    for attack, none, hybrid, other_none, other_hybrid in (
        ("lbfgs-l2", 6.93, 4.79, (8.61, 1.22), (6.33, 2.00)),
        ("adam-cosine", 13.88, 7.64, (12.15, 2.06), (8.25, 1.64)),
        ("lbfgs-cosine", 10.33, 6.16, (9.62, 0.91), (7.47, 0.25)),
        ("adam-l1", 9.99, 6.97, (9.48, 0.71), (6.43, 0.16)),
        ("adam-l2", 10.55, 7.61, (9.28, 0.69), (6.46, 0.21)),
        ("sgd-cosine", 14.04, 7.71, (12.60, 2.07), (8.03, 1.47)),
    )
}

TABLE_3: dict[str, Pair] = {
    "prune:70": pair("Table 3|Table 6", (12.00, 77.12), (11.62, 2.18, 74.61)),
    "prune:95": pair("Table 3|Table 6", (10.07, 70.12), (10.41, 1.32, 67.91)),
    "prune:99": pair("Table 3|Table 6", (10.93, 58.33), (9.96, 0.57, 53.43)),
    "laplacian:1e-3": pair("Table 3|Table 6", (11.85, 74.12), (10.73, 1.02, 71.45)),
    "laplacian:1e-2": pair("Table 3|Table 6", (9.67, 39.59), (12.03, 0.79, 26.20)),
    "gaussian:1e-3": pair("Table 3|Table 6", (12.71, 75.67), (12.11, 2.98, 72.89)),
    "gaussian:1e-2": pair("Table 3|Table 6", (11.44, 48.2), (12.13, 1.14, 36.25)),
    "hybrid": pair("Table 3|Table 1a", (7.64, 77.92), (8.25, 1.64, 77.47)),
}

TABLE_4: dict[str, dict[str, Pair]] = {
    "c": {
        "none": pair("Table 4a", (10.04, 95.03), (9.81, 4.41, 95.19)),
        "3-1-7": pair("Table 4a", (7.5, 87.95), (9.30, 2.72, 93.20)),
        "43-18-18": pair("Table 4a", (8.13, 91.29), (10.03, 2.23, 94.88)),
        "hybrid": pair("Table 4a", (8.14, 91.49), (7.49, 1.57, 94.49)),
    },
    "d": {
        "none": pair("Table 4b", (9.12, 94.25), (9.52, 3.27, 94.61)),
        "21-13-3": pair("Table 4b", (7.51, 74.81), (9.99, 2.12, 92.38)),
        "7-4-15": pair("Table 4b", (7.68, 88.29), (9.34, 1.62, 94.35)),
        "hybrid": pair("Table 4b", (7.11, 87.51), (11.50, 5.80, 93.77)),
    },
}
"""Policies that were searched on CIFAR-100 with the same network, used on Fashion-MNIST."""

TABLE_5: dict[str, Pair] = {
    "none": {R: Value("R, Table 5", 8.96, 61.44, 1.25)},
    "hybrid": {R: Value("R, Table 5", 7.92, 57.38, 0.79)},
}
"""The hybrid of CIFAR-100 on Tiny-ImageNet, R's first extension."""

BEST_FIVE = (3, 15, 18, 26, 1)
"""P, §5.4 and Figure 5: the entries with the lowest S_pri, the lowest first."""
BEST_FIVE_FOUND = {"cifar100": 4, "tiny-imagenet": 3}
"""R, experiment 9 and extension 2: how many of these it finds."""
CORRELATION = {P: 0.697, R: 0.123}
"""P, §4.2 and Figure 2; R, experiment 10: Pearson's correlation of S_pri with PSNR over 100 random policies."""
CORRELATION_POLICIES, CORRELATION_STEPS = 100, 2500
SHALLOW_SIMILARITY = 0.7
"""P, §5.4: where the similarity of shallow layers converges to with no or a random policy (Figure 6)."""
