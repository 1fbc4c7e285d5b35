"""Generation in a process of its own, as on devices of its own: an Engine for benches.

The child holds the model, answers with transformers' `generate` (HfEngine), and takes new weights
over a pipe. It is told each request as it is submitted, and says of each response when it ends.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import torch

from assay.trainer.engines.engine import Engine, EngineHost, Id, OnEnded
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.asynchrony import method

_LOOK_S = 0.02


class OwnProcess(Engine):
    """An Engine whose model is in a child process; see Engine.

    Args:
        host: the policy, whole and on a CPU.
    """

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        with host.model_context() as model:
            told = (model.config, host.tokenizer, host.seed, host.end_ids)
        self._child = context.Process(target=_answer, args=(theirs, *told), daemon=True)
        self._child.start()
        theirs.close()
        self._version = -1

    def submit(self, id_: Id, request: Request, sampling: Sampling) -> None:
        """See Engine."""
        super().submit(id_, request, sampling)
        self._pipe.send(("ask", (id_, request, sampling)))

    def update_weights(self) -> None:
        """See Engine; what is open began under the old weights, and ends under them."""
        if self.host.version() == self._version:
            return
        with self.host.model_context() as model, torch.no_grad():
            weights = [weight.detach().numpy().copy() for weight in model.parameters()]
        self._pipe.send(("weights", weights))
        self._version = self.host.version()

    def close(self) -> None:
        """See Engine."""
        super().close()
        if self._child.is_alive():
            self._pipe.send(("end", None))
            self._child.join()

    def _draw(self, on_ended: OnEnded) -> None:
        while self._open and not self._between:
            if not self._pipe.poll(_LOOK_S):
                continue
            try:
                id_, response = self._pipe.recv()
            except EOFError as error:
                raise TrainingStoppedError("the process that generates is gone") from error
            if id_ in self._open:
                del self._open[id_]
                on_ended(id_, response)
                return


def _answer(
    pipe: multiprocessing.connection.Connection,
    config: object,
    tokenizer: object,
    seed: int,
    end_ids: frozenset[int],
) -> None:
    """What the child does until it is told to end."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_config(config).eval()
    engine = HfEngine(EngineHost(lambda: nullcontext(model), tokenizer, seed, end_ids, nullcontext))

    def ended(id_: Id, response: Response) -> None:
        pipe.send((id_, response))

    while True:
        while pipe.poll(0 if engine.busy else None):
            word, told = pipe.recv()
            if word == "end":
                return
            if word == "ask":
                engine.submit(*told)
                continue
            while engine.busy:
                engine.poll(ended)
            with torch.no_grad():
                for weight, new in zip(model.parameters(), told, strict=True):
                    weight.copy_(torch.from_numpy(new))
        engine.poll(ended)


@contextmanager
def own_process() -> Iterator[None]:
    """Asynchronous runs generate in a process of their own."""
    with patch.object(method, "engine_for", lambda host, _config: OwnProcess(host)):
        yield
