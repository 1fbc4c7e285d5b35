"""RL Tango's hooks: a verifier that learns in turns with the policy."""

from __future__ import annotations

from assay.kit.errors import ConfigError
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.methods.cotraining.roles import Partner, settle
from assay.trainer.methods.cotraining.schedule import State
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.records.folder import RunFolder


class Cotraining(RunHooks):
    """A generative verifier beside the policy (RL Tango, arXiv 2505.15034)."""

    _state: State | None = None

    def check_processes(self, processes: int) -> None:
        """See Hooks."""
        if processes > 1:
            raise ConfigError(
                "method.cotraining.enabled = true needs a run of one process, and this one has "
                f"{processes}: two loops that take turns have not been tried on several; start it "
                "without a launcher"
            )

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return (
            "the verifier of method.cotraining is shown one solution of a prompt, judged by "
            "itself; set method.cotraining.enabled = false"
        )

    def settle(self, folder: RunFolder) -> None:
        """See RunHooks: both roles' checkpoints are of one moment."""
        self._state = settle(self.config, folder)

    def beside(self, session: RunSession, trainer: PolicyTrainer) -> Partner | None:
        """See RunHooks."""
        if self._state is None:
            return None
        return Partner(
            session.config,
            session.folder,
            self._state,
            policy=session.policy,
            trainer=trainer,
            problems=session.problems.train,
            judge=session.judge,
            display=session.display,
            world=session.world,
            stop=session.stop,
        )
