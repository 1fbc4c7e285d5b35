"""Judges by a profile: a coroutine that asks for parts and makes one judgement of them. Pure.

`Profile.run` yields the subtasks of one stage, is sent their outcomes, and returns the judgement or
the fault. Gates come first, one by one; then all components without conditions at once, and the
appeal of one of them; then those that wait for verdicts.

What an item lacks is found before the gates: else only candidates that a gate stops would get a
reward.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace

from assay.kit.judgements import SPENT
from assay.reward_server.absent import hint
from assay.reward_server.domain import (
    MISSING_REFERENCE,
    UNSUPPORTED_INPUT,
    VERIFIER_FAILED,
    Appeal,
    Component,
    CompositeVerifier,
    Fault,
    Hearing,
    Judgement,
    Outcome,
    Stages,
    Subtask,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
    handed_on,
)
from assay.reward_server.profiles import appeals
from assay.reward_server.profiles.binding import Binding, Bound, chosen_route, selected
from assay.reward_server.profiles.model import (
    CARRIES,
    REFERENCES,
    AppealRule,
    Definition,
    ProfileGate,
    ProfilePart,
)
from assay.reward_server.profiles.reading import ANY_FLAG
from assay.reward_server.verifiers import suspicions

_SHOWN_CHARS = 200
_MAX_SUSPICIONS = 64


class Profile(CompositeVerifier):
    """A named composition of verifiers, bound to those of this server.

    Attributes:
        canary: rows with known verdicts, and how often one is judged; None for none.
    """

    def __init__(self, binding: Binding) -> None:
        self._definition = binding.definition
        self._bound = binding.bound
        self._spec = binding.spec
        self._examples = binding.examples
        self._key = binding.key
        self.appeals: Mapping[str, AppealRule] = {
            part.name: part.appeal for part in self._definition.parts if part.appeal
        }
        self.canary = binding.canary

    def equals(self, other: Profile) -> bool:
        """Whether a file says the same of both."""
        return self._definition == other._definition

    @property
    def spec(self) -> VerifierSpec:
        """The profile's description."""
        return self._spec

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """Items with known verdicts; none asks another service."""
        return self._examples

    def run(self, item: VerifierItem) -> Stages:
        """Judges an item; see `CompositeVerifier.run`."""
        parts = selected(self._definition, item)
        if parts is None:
            return self._no_route(item)
        main = chosen_route(self._definition, item) or self._definition.main
        report = _Report(self._definition, self._spec, main)
        tasks = self._tasks(item, parts, report)
        if isinstance(tasks, Fault):
            return tasks
        report.suspect(suspicions.scan(_text(item)))
        fault = yield from self._pass_gates(tasks, report)
        if fault is None and report.stopped_by is None:
            fault = yield from self._judge_parts(item, parts, tasks, report)
        return fault or report.judgement()

    def _tasks(
        self, item: VerifierItem, parts: list[ProfilePart], report: _Report
    ) -> dict[str, Subtask] | Fault:
        """The subtask of each gate and part, or the fault where a needed one cannot be asked."""
        optional = {part.name for part in parts if part.optional}
        names = [gate.name for gate in self._definition.gates if gate.member]
        tasks: dict[str, Subtask] = {}
        for name in (*names, *(name for part in parts for name in part.asked)):
            task = self._task(self._bound[name], item)
            if isinstance(task, Subtask):
                tasks[name] = task
            elif name not in optional:
                return task
            else:
                report.leave_out(name, task)
        return tasks

    def _pass_gates(
        self, tasks: dict[str, Subtask], report: _Report
    ) -> Generator[tuple[Subtask, ...], tuple[Outcome, ...], Fault | None]:
        """Asks the gates, until one stops the item."""
        for gate in self._definition.gates:
            if gate.member is None:
                report.check_suspicions(gate)
            else:
                [outcome] = yield (tasks[gate.name],)
                if isinstance(outcome, Fault):
                    return self._fault(tasks[gate.name], outcome)
                report.add_gate(gate, outcome)
            if report.stopped_by is not None:
                return None
        return None

    def _judge_parts(
        self,
        item: VerifierItem,
        parts: list[ProfilePart],
        tasks: dict[str, Subtask],
        report: _Report,
    ) -> Generator[tuple[Subtask, ...], tuple[Outcome, ...], Fault | None]:
        left = [part for part in parts if part.name in tasks]
        while left:
            names = {part.name for part in left}
            stage = [part for part in left if not part.when or part.when.component not in names]
            left = [part for part in left if part not in stage]
            stage = [part for part in stage if report.wants(part)]
            if not stage:
                continue
            outcomes = yield tuple(tasks[part.name] for part in stage)
            for part, outcome in zip(stage, outcomes, strict=True):
                if isinstance(outcome, Fault):
                    if not part.optional:
                        return self._fault(tasks[part.name], outcome)
                    report.leave_out(part.name, outcome)
                else:
                    report.add_part(part, outcome)
            fault = yield from self._hear_appeal(item, stage, tasks, report)
            if fault is not None:
                return fault
        for gate in self._definition.gates:
            if gate.member is None and report.stopped_by is None:
                report.check_suspicions(gate)
        return None

    def _hear_appeal(
        self,
        item: VerifierItem,
        stage: list[ProfilePart],
        tasks: dict[str, Subtask],
        report: _Report,
    ) -> Generator[tuple[Subtask, ...], tuple[Outcome, ...], Fault | None]:
        """Asks the second verifier of the one part that has one, where its verdict is appealed."""
        for part in stage:
            rule = part.appeal
            if rule is None:
                continue
            first = report.judged[part.name]
            called, probability = first.verdict in rule.on, rule.probability(first.verdict)
            drawn = not called and (
                appeals.is_drawn(self._key, part.name, item, probability)
                if rule.draws
                else probability > 0
            )
            hearing = _hearing(self._bound[part.name], first)
            report.appeal = Appeal(part.name, hearing, None, drawn, probability)
            if not (called or drawn):
                continue
            task = tasks[part.second]
            [outcome] = yield (task,)
            if isinstance(outcome, Fault):
                facts = {**outcome.metadata, **appeals.facts(report.appeal)}
                return self._fault(task, replace(outcome, metadata=facts))
            report.hear(part, first, outcome, _hearing(self._bound[part.second], outcome))
        return None

    def _task(self, bound: Bound, item: VerifierItem) -> Subtask | Fault:
        """The subtask for a verifier, or why it cannot be asked."""
        spec = bound.spec
        if spec is None:
            return self._trouble(
                bound,
                "UNKNOWN_VERIFIER",
                f"verifier {bound.verifier!r} is not served here{hint(bound.verifier)}",
            )
        try:
            own = handed_on(item, spec, bound.parameters(item))
        except Unjudgeable as trouble:
            return self._trouble(bound, trouble.reason, trouble.message)
        return Subtask(bound.part, bound.verifier, own)

    def _no_route(self, item: VerifierItem) -> Fault:
        roads = "; or ".join(
            f"{route.condition} for {route.component!r}" for route in self._definition.routes
        )
        name = self._spec.name
        has_one = any(carries(item) for word, carries in CARRIES.items() if word in REFERENCES)
        reason = UNSUPPORTED_INPUT if has_one else MISSING_REFERENCE
        return Fault(
            reason,
            f"no route of profile {name!r} is for this item: it takes {roads}",
            {"profile": name, "verifier": name},
        )

    def _trouble(self, bound: Bound, reason: str, text: str) -> Fault:
        return self._named(bound.part, bound.verifier, Fault(reason, text))

    def _fault(self, task: Subtask, fault: Fault) -> Fault:
        return self._named(task.component, task.verifier, fault)

    def _named(self, part: str, verifier: str, fault: Fault) -> Fault:
        """The fault of a part as that of the whole: the same reason, and the part's name."""
        name = self._spec.name
        facts = {**fault.metadata, "verifier": verifier, "component": part, "profile": name}
        message = f"component {part!r} ({verifier}) of profile {name!r}: {fault.message}"
        return Fault(fault.reason or VERIFIER_FAILED, message, facts)


@dataclass(slots=True)
class _Report:
    """An item's state so far.

    Attributes:
        definition: the profile.
        spec: its description.
        main: the component that gives the verdict.
        judged: judgements by the name of the part.
        failed: gates that did not pass and only cost a penalty.
        stopped_by: the gate that stopped the item.
        flags: suspicions, in the order in which they came.
        notes: further words of the explanation.
        overruled: the first judgement of an appealed part.
        appeal: the appeal, as far as it has come.
    """

    definition: Definition
    spec: VerifierSpec
    main: str
    judged: dict[str, Judgement] = field(default_factory=dict)
    failed: list[ProfileGate] = field(default_factory=list)
    stopped_by: ProfileGate | None = None
    flags: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    overruled: Judgement | None = None
    appeal: Appeal | None = None

    def suspect(self, flags: tuple[str, ...]) -> None:
        for flag in flags[:_MAX_SUSPICIONS]:
            self.flags[flag] = None

    def leave_out(self, part: str, fault: Fault) -> None:
        """Notes that an optional component is missing."""
        self.notes.append(f"{part} is left out: {fault.reason}")

    def check_suspicions(self, gate: ProfileGate) -> None:
        """Whether a gate on suspicions passes; asked again when all is judged."""
        hits = [flag for flag in self.flags if flag in gate.flags or ANY_FLAG in gate.flags]
        if hits and gate not in self.failed:
            self._stop(gate, f"found {', '.join(hits)}")

    def add_gate(self, gate: ProfileGate, judgement: Judgement) -> None:
        self.judged[gate.name] = judgement
        self.suspect(judgement.suspicions)
        if gate.at_least is None:
            passed = judgement.verdict in gate.passing
        else:
            passed = judgement.reward >= gate.at_least
        if not passed:
            self._stop(gate, f"{judgement.verdict}: {judgement.explanation[:_SHOWN_CHARS]}")

    def _stop(self, gate: ProfileGate, why: str) -> None:
        if gate.penalty is None:
            self.stopped_by = gate
            self.notes.append(f"gate {gate.name!r} decides, {why}")
        else:
            self.failed.append(gate)
            self.notes.append(f"gate {gate.name!r} takes {gate.penalty:g} off, {why}")

    def wants(self, part: ProfilePart) -> bool:
        """Whether a part's condition on another part's verdict holds."""
        if part.when is None:
            return True
        other = self.judged.get(part.when.component)
        return other is not None and part.when.holds(other.verdict, other.reward)

    def add_part(self, part: ProfilePart, judgement: Judgement) -> None:
        self.judged[part.name] = judgement
        self.suspect(judgement.suspicions)
        self.notes.append(
            f"{part.name}: {judgement.explanation[:_SHOWN_CHARS] or judgement.verdict}"
        )

    def hear(self, part: ProfilePart, first: Judgement, second: Judgement, other: Hearing) -> None:
        """Puts the second judgement of a part in the place of its first."""
        self.overruled = first
        self.appeal = self.appeal and replace(self.appeal, second=other)
        self.add_part(part, second)
        self.notes[-1] = f"{self.notes[-1]} (on appeal)"

    def judgement(self) -> Judgement:
        """The judgement of the whole; its reward is the sum of weight times score."""
        components = self._gate_components() + self._part_components() + self._spent()
        stopped = self.stopped_by
        if stopped is not None and stopped.reward is not None:
            # What was judged before stays in the report and adds nothing.
            components = [Component(part.name, part.score, 0.0) for part in components]
            components.append(Component("gate", stopped.reward))
            reward = stopped.reward
        else:
            total = math.fsum(part.weight * part.score for part in components)
            reward = self.definition.clip(total) if self.definition.clip else total
            if reward != total:
                components.append(Component("clip", reward - total))
        # The sum of bounds and the sum of numbers within them are rounded each in its own way.
        reward = min(max(reward, self.spec.min_reward), self.spec.max_reward)
        main = self.judged.get(self.main)
        spanned = self.judged.get(self.definition.spans or self.main)
        return Judgement(
            reward,
            stopped.verdict if stopped is not None else self.judged[self.main].verdict,
            tuple(components),
            spanned.spans if spanned else (),
            main.extracted_answer if main else None,
            "; ".join(self.notes),
            suspicions=tuple(self.flags),
            appeal=self.appeal,
        )

    def _spent(self) -> list[Component]:
        """What the models behind gates and parts took."""
        asked = [*self.judged.values(), *([self.overruled] if self.overruled else [])]
        own = [part for found in asked for part in found.components]
        sums = {name: math.fsum(p.score for p in own if p.name == name) for name in SPENT}
        return [Component(name, total, 0.0) for name, total in sums.items() if total > 0]

    def _gate_components(self) -> list[Component]:
        found: list[Component] = []
        for gate in self.definition.gates:
            if gate.name in self.judged:
                found.append(Component(gate.name, self.judged[gate.name].reward, 0.0))
            if gate in self.failed and gate.penalty is not None:
                found.append(Component(f"{gate.name}-penalty", -gate.penalty))
        return found

    def _part_components(self) -> list[Component]:
        found: list[Component] = []
        shaped = {
            part.name: part.shaped(self.judged[part.name].reward)
            for part in self.definition.parts
            if part.name in self.judged
        }
        for part in self.definition.parts:
            if part.name not in self.judged:
                continue
            reward = self.judged[part.name].reward
            if all(factor in shaped for factor in part.times):
                score = math.prod((shaped[part.name], *(shaped[one] for one in part.times)))
                found.append(Component(part.name, score, part.weight))
            if part.is_shaped:
                found.append(Component(f"{part.name}-raw", reward, 0.0))
        return found


def _hearing(bound: Bound, judgement: Judgement) -> Hearing:
    version = bound.spec.version if bound.spec else ""
    return Hearing(bound.verifier, version, judgement.verdict, judgement.reward)


def _text(item: VerifierItem) -> str:
    if item.candidate.text is not None:
        return item.candidate.text
    turns = item.candidate.turns
    own = [turn.content for turn in turns if turn.from_policy]
    return "\n".join(own or [turn.content for turn in turns])
