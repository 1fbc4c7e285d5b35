"""An explanation may hold the reference: it is for people, and no policy is shown it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from assay.clients import Fault, Judgement, Result
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.methods.turns.protocol import Protocol
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import OneRank
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import stream
from turns_support import RECONSIDERS, VERIFIES, Speaker, chance, decode

CANARY = "expected 4242, got 41"
TRAINERS = "clients/assay/clients/trainers"
READERS = {
    f"{TRAINERS}/common/faults.py": "explanation_of, for those below that call it",
    f"{TRAINERS}/common/scoring.py": "a record beside the reward: verl, slime, ROLL",
    f"{TRAINERS}/trl.py": "log_extra: a column of TRL's table of completions",
    f"{TRAINERS}/verifiers_rubric.py": "the state of a rollout that has ended",
    f"{TRAINERS}/inspect_ai.py": "Score.explanation, of Inspect's log",
    f"{TRAINERS}/nemo_gym.py": "the answer of /verify, after the rollout",
    f"{TRAINERS}/tinker.py": "the logs of a step that ends its episode",
    "clients/assay/clients/convert.py": "from the wire",
    "clients/assay/viewer/items.py": "what the viewer shows of an item",
    "clients/assay/viewer/journals/reader.py": "a search in the journal's texts",
    "clients/assay/viewer/journals/rows.py": "rows of an export",
    "clients/assay/viewer/mirror.py": "a column of a copied journal",
    "clients/assay/cli/scoring/rows.py": "rows of `assay score`",
    "clients/assay/cli/validation.py": "the report of `assay validate`",
    "clients/assay/cli/commands/compare.py": "the table of `assay score --compare`",
    "clients/assay/clients/testing/cases.py": "the report of `assay check-verifier`",
    "clients/assay/clients/testing/soundness.py": "the report of `assay check-verifier`",
    "clients/assay/clients/testing/fake.py": "onto the wire, by a fake",
    "clients/assay/cli/environments/playing.py": "the end of `assay environments play`",
    "clients/assay/environments/faces/nemo_gym.py": "the answer of /verify, after the rollout",
    "clients/assay/environments/shipped/repository.py": "a judgement's own, and rows not proved",
    "clients/assay/environments/shipped/harbor.py": "why a task was not proved",
    "trainer/assay/trainer/rollouts/pairs.py": "the message of a fault",
    "trainer/assay/trainer/records/samples.py": "samples.jsonl",
}
"""Who reads one, and where it goes. None of them writes a prompt; who is new says so here."""


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="explanation", ctx=ast.Load()):
            return True
        case ast.Constant(value="explanation") | ast.Name(id="explanation_of"):
            return True
        case _:
            return False


@pytest.mark.parametrize("package", ["clients", "trainer", "genrm"])
def test_every_reader_of_an_explanation_is_known(repository: Path, package: str) -> None:
    found = {
        path.relative_to(repository).as_posix()
        for path in (repository / package / "assay").rglob("*.py")
        if any(_reads(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert found == {name for name in READERS if name.startswith(f"{package}/")}


class Teller:
    """A judge that says the reference with each judgement, or says nothing."""

    def __init__(self, outcome: str, told: str) -> None:
        self.outcome = outcome
        self.told = told
        self.asked = 0

    def submit(self, _request: Request, _response: Response) -> None:
        self.asked += 1

    def results(self) -> list[Result]:
        fault = Fault("WORKER_DIED", self.told, "UNAVAILABLE")
        reward = float(self.outcome == "correct")
        judgement = Judgement(reward, self.outcome, explanation=self.told)
        return [Result("0", fault if self.outcome == "fault" else judgement)] * self.asked


@pytest.mark.parametrize("protocol", [VERIFIES, RECONSIDERS], ids=["verifies", "reconsiders"])
def test_what_a_policy_is_shown_in_a_dialogue_depends_on_no_judge(protocol: Protocol) -> None:
    shown = []
    for outcome in ("correct", "incorrect", "fault"):
        for told in ("", CANARY):
            speaker = Speaker(chance(0, "correct", "wrong"), verifies=protocol.verifies)

            def judge(outcome: str = outcome, told: str = told) -> Teller:
                return Teller(outcome, told)

            source = Collector(
                stream(),
                speaker.sampler,
                judge,
                config=RolloutConfig(prompts_per_step=4, group_size=3),
                ranks=OneRank(),
                talk=Dialogues(protocol, decode),
            )
            source.collect(0)
            shown.append(speaker.prompts)
    assert max(turn for _, _, turn in shown[0]) == (2 if protocol.verifies else 1)
    assert all(prompts == shown[0] for prompts in shown)
