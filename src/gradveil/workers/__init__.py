"""Where independent jobs run: here, in processes on this machine, or on a Ray cluster.

A job's result depends on the job alone, never on where or beside what it ran: its threads come from the settings.
"""

from gradveil.workers.base import Crew, Job, JobDeathError, OnProgress, OnResult, Report, Shared
from gradveil.workers.cluster import Ray
from gradveil.workers.local import Workers, end_with_parent
from gradveil.workers.sharing import shared_in_file

__all__ = [
    "Crew",
    "Job",
    "JobDeathError",
    "OnProgress",
    "OnResult",
    "Ray",
    "Report",
    "Shared",
    "Workers",
    "end_with_parent",
    "shared_in_file",
]
