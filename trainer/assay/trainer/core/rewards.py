"""The reward services as the trainer sees them: samples in, judgements or faults out.

All goes through `assay.clients`: services of the run's own, a server elsewhere, or a transport in
this process, in tests.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from assay.api.execution.v1 import execution_pb2
from assay.clients import Anchor, Item, Result, RewardClient, Transport, VerifierInfo
from assay.clients.config import ClientConfig
from assay.clients.rows.tests import read_tests
from assay.clients.services import EmbeddedServices, who_brings
from assay.kit.errors import CallError, ConfigError, StartupError
from assay.kit.labels import fitting
from assay.kit.tls import ClientTls
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.outages import Patience, given_up
from assay.trainer.rollouts.pairs import PairsRound, as_win
from assay.trainer.rollouts.scoring import BackgroundClient, StreamingRound
from assay.trainer.settings.sections import RewardConfig

TRAINING, EVALUATION, SURVEY = "train", "eval", "survey"
"""Phases of a run, as labels of what is judged in them."""
_CONNECT_TIMEOUT_S = 10.0
_LEAST_JOURNAL_MB = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to be judged.

    Attributes:
        group: samples of one prompt share it.
        truncated: the response was cut at max_new_tokens.
        tests: JSON of a program's tests, in place of the reference.
    """

    question: str
    response: str
    reference: str | tuple[str, ...]
    group: str = ""
    token_count: int | None = None
    truncated: bool = False
    tests: str = ""


class Judge:
    """Scores responses with one configured verifier.

    Attributes:
        patience: how long to wait out outages; by default as configured, 0 for services of the
            run's own, which nobody restarts.
        anchors: the response to beat of each problem, where rewards are chances of winning; a
            problem without one is a fault.
        in_pairs: the samples of a training prompt are compared in pairs.
        done: steps of the run that are over, for the labels of what is judged.
        judges_groups: the verifier compares the samples of a prompt.
        verifier: as the server described it at the start; None where nobody asked.
    """

    def __init__(
        self,
        client: BackgroundClient,
        config: RewardConfig,
        *,
        judges_groups: bool = False,
        patience: Patience | None = None,
    ) -> None:
        self.patience = patience or Patience(
            config.max_outage_s if config.target else 0.0, config.timeout_s
        )
        self.anchors: Mapping[Problem, str] | None = None
        self.in_pairs = False
        self.done: Callable[[], int] | None = None
        self._client = client
        self._config = config
        self.judges_groups = judges_groups
        self.verifier: VerifierInfo | None = None
        self._rounds: list[StreamingRound] = []

    def score(self, samples: Sequence[Sample]) -> list[Result]:
        """One judgement or fault per sample, in order; a call that fails faults its samples."""
        items = [self.item(sample) for sample in samples]
        if not items:
            return []
        results = self._client.score(items)
        return self.patience.settle(self._client, items, results, whole_groups=self.judges_groups)

    def open_round(self, group_size: int, phase: str = TRAINING) -> StreamingRound:
        """Begins to score responses while others are being generated.

        `group_size` responses of each draw will be submitted; `phase` is their label.

        Raises:
            ConfigError: the client is closed.
        """
        return self._opened(
            partial(self._item_of, phase=phase),
            group_size=group_size if self.judges_groups else 0,
            settle=(lambda result: result) if self.anchors is None else as_win,
        )

    def open_training_round(self, group_size: int) -> StreamingRound | PairsRound:
        """`open_round` for samples that train, in pairs where so configured.

        Raises:
            ConfigError: the client is closed.
        """
        if not self.in_pairs:
            return self.open_round(group_size)
        if self.judges_groups:
            return self._opened(self._unanchored, group_size=group_size, settle=as_win)
        inner = self._opened(self._unanchored)

        def item_of(request: Request, response: Response, other: str) -> Item:
            item = self.item(sample_of(request, response))
            return replace(item, reference=Anchor(other), group_id="")

        return PairsRound(inner, item_of, group_size=group_size)

    def beside(self, config: RewardConfig, of: str = "reward.verifier") -> Judge:
        """A judge with another verifier of the same service, valid as long as this one.

        `of` says in a message where it is named.

        Raises:
            ConfigError: the service does not serve it.
        """
        found = _check(self._client, config, config.target or "the run's own service", of)
        other = Judge(self._client, config, judges_groups=found.needs_group, patience=self.patience)
        other.done = lambda: self.done() if self.done else 0
        return other

    def _opened(
        self,
        item_of: Callable[[Request, Response, str], Item],
        *,
        group_size: int = 0,
        settle: Callable[[Result], Result] = lambda result: result,
    ) -> StreamingRound:
        opened = StreamingRound(
            self._client,
            item_of,
            timeout_s=self._config.timeout_s,
            group_size=group_size,
            settle=settle,
            patience=self.patience,
        )
        self._rounds = [*(earlier for earlier in self._rounds if not earlier.closed), opened]
        return opened

    def _item_of(self, request: Request, response: Response, id_: str, phase: str) -> Item:
        item = self.item(sample_of(request, response), id_, phase)
        if self.anchors is None:
            return item
        anchor = self.anchors.get(request.draw.problem)
        return replace(item, reference=None if anchor is None else Anchor(anchor))

    def _unanchored(self, request: Request, response: Response, id_: str) -> Item:
        return self.item(sample_of(request, response), id_)

    def close(self) -> None:
        """Gives up open rounds."""
        for opened in self._rounds:
            opened.close()

    def ask(self, item: Item, request: Request, phase: str) -> Future[list[Result]]:
        """Sends one item about a rollout, in any thread; its result, a fault where the call fails.

        What the item leaves open is the run's: verifier, parameters, tests, limit, labels.
        """
        problem, own = request.draw.problem, not item.verifier and not item.task
        reference = item.reference
        if own and problem.tests and not reference:
            reference = _suite(problem.tests)
        filled = replace(
            item,
            reference=reference,
            verifier=self._config.verifier if own else item.verifier,
            parameters=item.parameters or (self._config.parameters if own else {}),
            group_id=item.group_id or str(request.draw.number),
            timeout_s=item.timeout_s or self._config.item_timeout_s or None,
            labels={**self._labels(phase), **item.labels},
        )
        return self._client.submit([filled], timeout_s=self._config.timeout_s)

    def _labels(self, phase: str) -> dict[str, str]:
        labels = {"phase": phase}
        if self.done is not None:
            labels["step"] = str(self.done() + (phase != EVALUATION))
        return labels

    def item(self, sample: Sample, id_: str = "", phase: str = TRAINING) -> Item:
        """The service's item for a sample, labelled by the step and the phase of the run."""
        return Item(
            id=id_,
            response=sample.response,
            reference=_suite(sample.tests) if sample.tests else sample.reference,
            verifier=self._config.verifier,
            prompt=sample.question,
            group_id=sample.group,
            parameters=self._config.parameters,
            response_token_count=sample.token_count,
            truncated=sample.truncated,
            timeout_s=self._config.item_timeout_s or None,
            labels=self._labels(phase),
        )


def sample_of(request: Request, response: Response) -> Sample:
    """A response of a rollout as a sample; its group is the draw."""
    problem = request.draw.problem
    return Sample(
        problem.question,
        response.text,
        problem.reference,
        group=str(request.draw.number),
        token_count=len(response.ids),
        truncated=response.truncated,
        tests=problem.tests,
    )


@lru_cache(maxsize=1024)
def _suite(tests: str) -> execution_pb2.TestSuite:
    return read_tests(json.loads(tests))


@dataclass(frozen=True, slots=True)
class Reach:
    """How other machines reach services that a run starts on its first, `host`.

    The token crosses the network in plain text.
    """

    host: str
    token: str


@contextmanager
def own_services(
    config: RewardConfig,
    transport: Callable[[], Transport] | None = None,
    reach: Reach | None = None,
    journal: Path | None = None,
    say: Callable[[str], None] = lambda _line: None,
    *,
    beside: Collection[str] = (),
) -> Iterator[str]:
    """The reward service's address, for the length of a `with` block.

    One of a run's processes enters this and shares the address. An empty target starts services
    that end with the block; a `transport` replaces the network, and nothing is started. Without
    `reach` they are on loopback. They keep the journal in a file, within config.journal_mb; where
    it cannot be written the run goes on without it, and `say` gets a line. `beside` names services
    that the reward service asks, such as the sandbox.

    Raises:
        ConfigError: config.journal_mb is too small for a journal; or services beside it are asked
            for other machines.
        StartupError: the run's own services could not start.
    """
    if transport is not None or config.target:
        yield config.target
        return
    with ExitStack() as stack:
        flags: list[str] = []
        if reach is not None and beside:
            raise ConfigError(
                f"a run on several machines cannot start {', '.join(beside)} of its own; start the "
                "services with `assay up` and name them with reward.target"
            )
        if reach is not None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-token-"))
            file = Path(folder) / "token"
            file.touch(0o600)
            file.write_text(reach.token, encoding="utf-8")
            flags = ["--token-file", str(file)]
        own = _started(flags, _kept(config, journal), reach, say, ("reward", *beside))
        stack.callback(own.stop)
        port = own.address.rpartition(":")[2]
        yield own.address if reach is None else f"{reach.host}:{port}"


def _kept(config: RewardConfig, journal: Path | None) -> list[str]:
    if journal is None or not config.journal_mb:
        return []
    if config.journal_mb < _LEAST_JOURNAL_MB:
        raise ConfigError(
            f"reward.journal_mb = {config.journal_mb}: a journal takes {_LEAST_JOURNAL_MB} MiB or "
            "more; 0 keeps none"
        )
    return ["--journal", str(journal), "--journal-max-mb", str(config.journal_mb)]


def _started(
    flags: list[str],
    kept: list[str],
    reach: Reach | None,
    say: Callable[[str], None],
    names: Sequence[str],
) -> EmbeddedServices:
    host = "127.0.0.1" if reach is None else "0.0.0.0"  # noqa: S104  # for the other machines
    own = EmbeddedServices(names, arguments={"reward": [*flags, *kept]}, host=host)
    try:
        own.start()
    except StartupError as error:
        if not kept or "--journal" not in str(error):
            raise
        say(f"the run goes on without a journal: {error}")
        return _started(flags, [], reach, say, names)
    return own


@contextmanager
def open_judge(
    config: RewardConfig,
    transport: Callable[[], Transport] | None = None,
    *,
    target: str | None = None,
    reach: Reach | None = None,
    run: str = "",
) -> Iterator[Judge]:
    """Connects to the reward service for the length of a `with` block.

    `target` is an address of `own_services`; by default the configured target, or, if it is empty,
    services that end with the block. `transport` and `reach` are as for `own_services`. `run` is
    the label of all that is judged.

    Raises:
        ConfigError: nobody answers at the target, it does not serve the verifier, or the file of a
            token or certificate is unusable.
        StartupError: the run's own services could not start.
    """
    services = own_services(config, transport) if target is None else nullcontext(target)
    with (
        services as address,
        BackgroundClient(
            address,
            timeout_s=config.timeout_s,
            config=ClientConfig(micro_batch_wait_s=0.0),  # a StreamingRound gathers
            transport=transport,
            tls=_tls(config),
            token=reach.token if reach and not config.target else _token(config),
            labels={"run": fitting(run)} if run else None,
        ) as client,
    ):
        found = _check(client, config, address)
        judge = Judge(client, config, judges_groups=found.needs_group)
        judge.verifier = found
        try:
            yield judge
        finally:
            judge.close()


def _token(config: RewardConfig) -> str | None:
    if not config.token_file:
        return None
    try:
        return Path(config.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise ConfigError(f"reward.token_file {config.token_file}: {why}") from error


def _tls(config: RewardConfig) -> ClientTls | None:
    if not config.tls_ca:
        return None
    cert, key = (Path(name) if name else None for name in (config.tls_cert, config.tls_key))
    tls = ClientTls(Path(config.tls_ca), cert, key)
    tls.credentials()
    return tls


def _check(
    client: RewardClient, config: RewardConfig, target: str, of: str = "reward.verifier"
) -> VerifierInfo:
    try:
        client.wait_ready(min(_CONNECT_TIMEOUT_S, config.timeout_s))
        served = client.list_verifiers()
    except CallError as error:
        raise ConfigError(
            f"reward.target: {error}; or leave it empty, and a service is started for the run"
        ) from error
    found = served.find(config.verifier)
    if found is None:
        raise ConfigError(
            f"{of} = {config.verifier!r} is not served at {target}; it serves: "
            f"{', '.join(verifier.name for verifier in served.verifiers)}"
            f"{who_brings(config.verifier)}"
        )
    return found


class FaultWatch:
    """Detects when too many of the latest samples had no judgement.

    One that waited in vain for absent services is too many. The ratio is over `window` whole steps
    even at the start, so that one bad first step does not stop a run.
    """

    def __init__(self, *, max_ratio: float, window: int) -> None:
        self._max_ratio = max_ratio
        self._window = window
        self._steps: deque[tuple[int, Counter[str]]] = deque(maxlen=window)

    def add(self, results: Sequence[Result]) -> str | None:
        """Takes in one step's results; returns what is wrong, in a line, past the limit."""
        outage = given_up(results)
        if outage is not None and not outage.interrupted:
            return str(outage)
        self._steps.append(
            (len(results), Counter(r.fault.reason for r in results if r.fault is not None))
        )
        reasons = sum((faults for _, faults in self._steps), Counter())
        seen = sum(count for count, _ in self._steps)
        capacity = seen * self._window / len(self._steps)
        if not reasons or reasons.total() <= self._max_ratio * capacity:
            return None
        frequent = ", ".join(f"{reason} x{count}" for reason, count in reasons.most_common(3))
        return (
            f"{reasons.total()} of the last {seen} samples had no judgement ({frequent}); "
            f"reward.max_fault_ratio allows {self._max_ratio:g} over {self._window} steps"
        )
