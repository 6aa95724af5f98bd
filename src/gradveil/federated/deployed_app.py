"""The Flower apps of a deployment: every process reads the plan of the run, then loads the data set by its name.

The server's process finds the plan in the run's configuration, a client's process in that of its own node: what a
client does is never decided by the server.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gradveil import data as data_sets
from gradveil.errors import DataError, GradveilError, SettingsError
from gradveil.federated.client_app import ParticipantApp
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.flower import ClientApp, Context, Grid, Message, ServerApp
from gradveil.federated.participants import Participants
from gradveil.federated.settings import FederatedSettings
from gradveil.results import read_settings, to_json, write_file

PLAN, ERROR = "plan.json", "error.txt"


@dataclass(frozen=True)
class Plan:
    """What the processes of a deployment must know: the settings, what to keep, the run's folder, the data's folder."""

    settings: FederatedSettings
    recording: Recording
    folder: Path
    root: Path | None = None

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        root = None if self.root is None else str(self.root.absolute())
        record = {"settings": self.settings.to_record(), "recording": asdict(self.recording), "root": root}
        write_file(path, to_json({**record, "folder": str(self.folder.absolute())}))

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan back."""
        try:
            record = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read as the plan of a deployment: {error}") from error
        return read_settings(
            cls,
            record,
            "deployment",
            settings=FederatedSettings.from_record,
            recording=lambda part: read_settings(Recording, part, "recording"),
            folder=Path,
            root=Path,
        )

    def get(self) -> Participants:
        """Load the data and divide it; a client's process uses its own share only."""
        return load_participants(self)


@cache
def load_participants(plan: Plan) -> Participants:
    return Participants(plan.settings, data_sets.load(plan.settings.data, plan.root))


def find_plan(config: Mapping[str, Any]) -> Plan:
    """Read the plan that a configuration names."""
    path = config.get("plan")
    if not isinstance(path, str) or not path:
        raise SettingsError(f'the configuration names the plan {path!r}: write plan="/path/to/{PLAN}"')
    return Plan.read(Path(path))


def make_server_app() -> ServerApp:
    """Make the server's app; an error of ours is left in a file beside the plan, because Flower does not pass it on."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        plan = find_plan(context.run_config)
        try:
            Coordinator(plan.get(), plan.folder, plan.recording, resume=True).serve(grid)
        except GradveilError as error:
            write_file(Path(str(context.run_config["plan"])).with_name(ERROR), str(error))
            raise

    return app


def make_client_app() -> ClientApp:
    """Make a client's app."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        plan = find_plan(context.node_config)
        keeper = plan.recording.truth_keeper(plan.folder)
        return ParticipantApp(plan, keeper).train(message, context)

    return app
