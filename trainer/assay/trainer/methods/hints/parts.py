"""Parts and words of hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "hints",
        "sampling",
        "A problem that nobody answered rightly is answered again in the step, with the beginning "
        "of its solution.",
        "GHPO, arXiv 2507.10628",
        lambda c: c.method.hints.enabled,
        to("method.hints.enabled", False),
        code=("methods.hints.hints.with_hint",),
        needs={
            "collector": "it has groups answered again within their step",
            "outcomes": "a problem that nobody solved is answered again with a hint",
            "verdicts": "it goes by right and wrong",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """What becomes of a problem that nobody solved."""
    if not config.method.hints.enabled:
        return []
    shares = ", ".join(f"{share:.0%}" for share in config.method.hints.shares)
    return [
        (
            "a problem that nobody answered rightly is answered again in the step, with the first "
            f"{shares} of its solution in the prompt"
        )
    ]
