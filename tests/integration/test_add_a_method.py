"""docs/extend/add-a-method.md does what it says: its package is built, installed, explained, run.

Its loss and gradient are those of TRL's own GMPO."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Python = Callable[[str], str]

_TRAINS = """
    import io, json, sys
    from pathlib import Path

    import torch
    from rich.console import Console

    from assay.kit.runs.environment import calm
    from assay.kit.runs.records import read_rows
    from assay.trainer.records import folder, plots
    from assay.trainer.recipes.train import run
    from assay.trainer.settings import config as configs
    from trainer_support import SUMS, ExactTransport, build_tiny

    calm()
    torch.set_num_threads(1)
    plots.draw = lambda rows, *_args, **_kwargs: plots.panels(rows)
    build_tiny(Path("tiny"))
    rows = ({"question": f"{a}+{b}=", "answer": str(a + b)} for a, b in SUMS)
    Path("sums.jsonl").write_text("".join(json.dumps(row) + chr(10) for row in rows))
    small = [
        "data=sums.jsonl", "model=tiny", "model.device=cpu", "reward=exact", "eval.prompts=0",
        "rollout.prompts_per_step=8", "rollout.group_size=8", "rollout.max_new_tokens=4",
        "optim.mini_batches=2", "optim.learning_rate=4e-3", "run.steps=3", "run.report_to=[]",
    ]
    for name, more in (("gmpo", []), ("ppo", ["ablate=geometric-mean-loss"])):
        config = configs.load(Path("gmpo.toml"), [*small, *more])
        where = folder.create(config, name, Path(name))
        run(config, where, Console(file=io.StringIO()), transport=ExactTransport)
        print(name, [row["loss"] for row in read_rows(where.metrics)])
"""

_TRLS = """
    import os
    from collections import defaultdict
    from types import SimpleNamespace

    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    import torch
    from trl.experimental.gmpo import GMPOTrainer

    from assay.trainer.core.objective import count, policy_loss
    from assay.trainer.settings.objective import LossConfig
    from assay_gmpo.declared import GmpoSettings

    torch.manual_seed(0)
    B, T = 6, 9
    logps_BT = torch.randn(B, T).mul(0.7).sub(2).requires_grad_()
    old_BT = logps_BT.detach() + torch.randn(B, T) * 0.6
    mask_BT = torch.arange(T) < torch.tensor([9, 3, 1, 7, 9, 5]).unsqueeze(1)
    advantages_B = torch.tensor([1.0, -1.0, 0.5, -2.0, 0.3, -0.1])
    batch = {
        "loss_mask": mask_BT, "advantages": advantages_B.unsqueeze(1) * mask_BT,
        "correct": advantages_B > 0, "old_logps": old_BT, "sampler_logps": old_BT,
    }
    config = LossConfig(objective="gmpo", aggregation="seq-mean-token-mean")
    ours = policy_loss(
        logps_BT, torch.zeros(B, T), batch, config, count(batch), max_length=T, own=GmpoSettings()
    ).loss
    (ours_BT,) = torch.autograd.grad(ours, logps_BT)

    quiet = SimpleNamespace(reduce=lambda x, *_, **__: x, gather=lambda x: x, num_processes=1)
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logps_BT, torch.zeros(B, T), None),
        top_entropy_quantile=1.0, epsilon_low=0.4, epsilon_high=0.4, beta=0.0, tools=None,
        model=SimpleNamespace(training=True), current_gradient_accumulation_steps=1,
        accelerator=quiet, _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
    )
    ids_BT = torch.zeros(B, T, dtype=torch.long)
    inputs = {
        "prompt_ids": ids_BT, "prompt_mask": torch.ones(B, T), "completion_ids": ids_BT,
        "completion_mask": mask_BT.float(), "advantages": advantages_B,
        "old_per_token_logps": old_BT,
    }
    theirs = GMPOTrainer._compute_loss(trainer, None, inputs)
    (theirs_BT,) = torch.autograd.grad(theirs, logps_BT)
    assert torch.allclose(ours, theirs, atol=1e-6), (ours, theirs)
    assert torch.allclose(ours_BT, theirs_BT, atol=1e-6)
    assert ours_BT.abs().sum() > 0
    print("same")
"""


def blocks(repository: Path, language: str) -> list[str]:
    """The code blocks of the page in one language."""
    page = (repository / "docs" / "extend" / "add-a-method.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture(scope="module")
def python(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Runs a program where the page's package is installed, in a folder with its gmpo.toml."""
    pytest.importorskip("hatchling", reason="the page's package is built with hatchling")
    folder = tmp_path_factory.mktemp("gmpo")
    package = folder / "source" / "assay_gmpo"
    package.mkdir(parents=True)
    project, settings = blocks(repository, "toml")
    (package.parent / "pyproject.toml").write_text(project)
    (package / "__init__.py").write_text("")
    for name, code in zip(("declared", "loss"), blocks(repository, "python"), strict=True):
        (package / f"{name}.py").write_text(code)
    (folder / "gmpo.toml").write_text(settings)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--disable-pip-version-check"]
    pip += ["--target", str(folder / "installed"), str(package.parent)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    path = [str(folder / "installed"), str(repository / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}

    def go(program: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            cwd=folder,
            env=environment,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return go


def explained(python: Python, *overrides: str) -> str:
    told = python(f"from assay.cli.main import run; run(['train', '--explain', *{overrides!r}])")
    return re.sub(r"\s+", " ", told)


@pytest.mark.slow
def test_the_settings_explain_it(python: Python) -> None:
    told = explained(python, "gmpo.toml")
    assert "A * (product over its tokens of r, clipped into [e^-0.4, e^0.4]" in told
    assert "geometric-mean-loss" in told
    assert "GMPO, arXiv 2507.20673" in told
    assert "e^0.25" in explained(python, "gmpo.toml", "method.gmpo.clip_high=0.25")


def test_what_it_does_not_go_with_is_said_as_on_the_page(python: Python, repository: Path) -> None:
    told = python(
        """
        from pathlib import Path
        from assay.kit.errors import ConfigError
        from assay.trainer.settings.config import load
        for override in ("method.loss.ratio=sequence", "method.loss.objective=gmop"):
            try:
                load(Path("gmpo.toml"), [override])
            except ConfigError as error:
                print(error)
        """
    )
    (sentence,) = blocks(repository, "text")
    assert re.sub(r"\s+", " ", sentence).strip() in told
    assert "did you mean" in told
    assert "gmpo, ppo" in told


@pytest.mark.slow
def test_it_trains_and_can_be_switched_off(python: Python) -> None:
    lines = python(_TRAINS).splitlines()
    losses = {name: told for name, _, told in (line.partition(" ") for line in lines)}
    assert losses.keys() == {"gmpo", "ppo"}
    assert losses["gmpo"] != losses["ppo"]


@pytest.mark.slow
def test_its_loss_and_gradient_are_trls(python: Python) -> None:
    assert "same" in python(_TRLS)
