"""Flower's simulation: the clients run as actors of a Ray that is started for the run, on this machine only."""

from gradveil.errors import import_extra
from gradveil.federated.coordinator import Coordinator
from gradveil.federated.flower import Context, Grid, ServerApp, alone_on_this_machine, silenced
from gradveil.workers import Workers

SHARING = 2
"""With two processes or more, `Workers` shares a value through a file, which Ray's actors can read."""


def run_on_ray(coordinator: Coordinator, workers: int) -> None:
    """Run the clients in `workers` actors."""
    with alone_on_this_machine():
        import_extra("ray", "federated")
        simulate(coordinator, workers)


def simulate(coordinator: Coordinator, workers: int) -> None:
    """Run Flower's simulation."""
    from flwr.simulation import run_simulation

    participants = coordinator.participants
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        del context
        coordinator.serve(grid)

    with silenced(), Workers(SHARING) as crew:
        make_app = coordinator.make_app(crew.share(participants))
        # It is deprecated in favour of `flwr run`, which starts processes of its own; there is no other for Python.
        run_simulation(
            server_app,
            make_app(),
            participants.settings.clients,
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": {"num_cpus": workers, "log_to_driver": False},
            },
        )
