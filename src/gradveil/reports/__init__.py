"""Tables, figures and pages. A report's module is imported when one of its names is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradveil.reports.home import keep_out_of_home

if TYPE_CHECKING:
    from gradveil.reports.attack_pictures import draw_losses, draw_paths, draw_similarities, draw_strip
    from gradveil.reports.audit_comparison import render_comparison
    from gradveil.reports.audit_files import read_audit, verify_audit, write_audit
    from gradveil.reports.audit_gallery import Visible
    from gradveil.reports.audit_output import pictures_of, record_of, render_report, save_page
    from gradveil.reports.audit_page import render_audit
    from gradveil.reports.audit_pictures import Frames, Pictures
    from gradveil.reports.audit_table import write_csv
    from gradveil.reports.curves import draw_curves
    from gradveil.reports.federated_curves import draw_rounds
    from gradveil.reports.leak_by_round import draw_leak_by_round
    from gradveil.reports.pareto import Point, draw_pareto
    from gradveil.reports.pictures import data_address, draw_grid, to_image, to_png
    from gradveil.reports.score_figures import Bar, draw_bars, draw_similarity
    from gradveil.reports.sealed_page import is_page
    from gradveil.reports.search_page import render_search_page
    from gradveil.reports.sheet import draw_catalogue, draw_policies

MODULES = {
    "attack_pictures": ("draw_losses", "draw_paths", "draw_similarities", "draw_strip"),
    "audit_comparison": ("render_comparison",),
    "audit_gallery": ("Visible",),
    "audit_files": ("read_audit", "verify_audit", "write_audit"),
    "audit_output": ("pictures_of", "record_of", "render_report", "save_page"),
    "audit_page": ("render_audit",),
    "audit_pictures": ("Frames", "Pictures"),
    "audit_table": ("write_csv",),
    "curves": ("draw_curves",),
    "leak_by_round": ("draw_leak_by_round",),
    "pareto": ("Point", "draw_pareto"),
    "federated_curves": ("draw_rounds",),
    "pictures": ("data_address", "draw_grid", "to_image", "to_png"),
    "score_figures": ("Bar", "draw_bars", "draw_similarity"),
    "sealed_page": ("is_page",),
    "search_page": ("render_search_page",),
    "sheet": ("draw_catalogue", "draw_policies"),
}


def __getattr__(name: str) -> Any:
    for module, names in MODULES.items():
        if name in names:
            keep_out_of_home()
            return getattr(import_module(f"gradveil.reports.{module}"), name)
    raise AttributeError(f"module 'gradveil.reports' has no attribute '{name}'")


__all__ = [
    "Bar",
    "Frames",
    "Pictures",
    "Point",
    "Visible",
    "data_address",
    "draw_bars",
    "draw_catalogue",
    "draw_curves",
    "draw_grid",
    "draw_leak_by_round",
    "draw_losses",
    "draw_pareto",
    "draw_paths",
    "draw_policies",
    "draw_rounds",
    "draw_similarities",
    "draw_similarity",
    "draw_strip",
    "is_page",
    "pictures_of",
    "read_audit",
    "record_of",
    "render_audit",
    "render_comparison",
    "render_report",
    "render_search_page",
    "save_page",
    "to_image",
    "to_png",
    "verify_audit",
    "write_audit",
    "write_csv",
]
