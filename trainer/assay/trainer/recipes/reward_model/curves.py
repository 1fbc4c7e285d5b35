"""The curves of a reward model's run. matplotlib takes seconds, so the end imports this."""

from __future__ import annotations

from assay.clients.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.plots import BLUE, END, GREY, ORANGE, Curve, Panel, draw

PANELS = (
    Panel("loss", (Curve("loss", END, BLUE),), "zero"),
    Panel("gradient norm", (Curve("grad_norm", END, GREY),), "zero"),
    Panel("learning rate", (Curve("learning_rate", END, ORANGE),), "zero"),
)


def draw_curves(folder: RunFolder, title: str, subtitle: str) -> None:
    """Draws metrics.jsonl as curves.png."""
    draw(read_rows(folder.metrics), folder.curves, title=title, subtitle=subtitle, among=PANELS)
