"""Where a command's jobs run: `--workers` and `--ray`."""

from typing import Annotated

import typer

from gradveil.workers import Crew, Ray, Workers

RayAddress = Annotated[
    str | None,
    typer.Option("--ray", help="HOST:PORT of a Ray cluster to use instead; --out must be a folder that all nodes see."),
]


def gather_crew(workers: int, ray: str | None, threads: int = 1) -> Crew:
    """Make ready the processes of this machine, or those of a cluster if one is named."""
    return Workers(workers, threads) if ray is None else Ray(ray, threads)
