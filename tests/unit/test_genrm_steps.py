"""How responses are cut into steps, what of a program is code, and how steps become a score."""

from __future__ import annotations

import ast
import gzip
import io
import json
import math
import sysconfig
import time
import tokenize
import warnings
from pathlib import Path

import pytest

from assay.genrm.domain import (
    CandidateSteps,
    ChatMessage,
    ResolvedStepSettings,
)
from assay.genrm.engines.base import (
    Answer,
    ModelInfo,
    RateSteps,
    Request,
    StepsRated,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.steps import chance
from assay.genrm.steps import (
    StepSpan,
    aggregate,
    label_lines,
    score_steps,
    search_prefix,
    spans_of,
    split,
)
from assay.genrm.steps.code import mask_idle
from assay.genrm.steps.languages import LANGUAGES
from assay.genrm.templates import load_templates
from assay.kit.faults import Unjudgeable
from genrm_judging_support import GENERATIVE, QUESTION, SCALAR, WRITER, drive, text_of
from genrm_judging_support import model as model_that

TEMPLATES = load_templates()
HEAD = ModelInfo("prm", "transformers", "r", frozenset(["rate-steps"]), 4096, deterministic=True)
TOKENS = TokenCounts(10, 4)
PROGRAM = '''\
def f(x):
    """Returns x.

    Twice."""
    # doubles
    text = """not
    # a comment

    """
    return 2 * x  # it's


'''


def texts(response: str, spans: tuple[StepSpan, ...]) -> list[str]:
    return [response[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("response", "splitting", "tag", "steps"),
    [
        ("", "line", "", []),
        ("one", "line", "", ["one"]),
        ("one\ntwo\n", "line", "", ["one\n", "two\n"]),
        ("one\r\ntwo\rthree", "line", "", ["one\r\n", "two\r", "three"]),
        ("\n\n one\n\n\ntwo", "line", "", ["\n\n one\n\n\n", "two"]),
        ("a\nb\n\nc\n \t\n\nd", "paragraph", "", ["a\nb\n\n", "c\n \t\n\n", "d"]),
        ("a\r\nb\r\n\r\nc", "paragraph", "", ["a\r\nb\r\n\r\n", "c"]),
        ("a\n\n    b", "paragraph", "", ["a\n\n", "    b"]),
        ("\n\na", "paragraph", "", ["\n\na"]),
        ("a<s>b<s>", "tag", "<s>", ["a<s>", "b<s>"]),
        ("<s>a<s>\n<s>b", "tag", "<s>", ["<s>a<s>\n<s>", "b"]),
        ("aaa", "tag", "aa", ["aaa"]),
        ("no tag", "tag", "<s>", ["no tag"]),
        ("a\n\nb\nc", "auto", "", ["a\n\n", "b\nc"]),
        ("a\nb", "auto", "", ["a\n", "b"]),
        ("x = 1\n\n# y\n", "code-line", "", ["x = 1\n", "\n", "# y\n"]),
    ],
)
def test_cuts(response: str, splitting: str, tag: str, steps: list[str]) -> None:
    spans = split(response, splitting, tag)
    assert texts(response, spans) == steps


def test_only_lines_of_code_can_be_neutral_beside_a_blank_response() -> None:
    assert split(" \n\n ", "line") == (StepSpan(0, 4, neutral=True),)
    assert not any(span.neutral for span in split("# a\n\n# b", "paragraph"))


def test_a_tag_is_needed_to_split_by_it() -> None:
    with pytest.raises(ValueError, match="needs a tag"):
        split("a", "tag")


def test_comments_docstrings_and_blank_lines_are_neutral() -> None:
    idle = [span.neutral for span in split(PROGRAM, "code-line")]
    # A string that is a value is code, whatever its lines look like; but a blank line says nothing.
    assert idle == [False, True, True, True, True, False, False, True, False, False, True, True]


@pytest.mark.parametrize(
    ("program", "language", "code"),
    [
        ("'a'  # 'b'\n'a' 'b'\nf'{x()}'\nrb'x'", "python", [2, 3]),
        ("x = [\n'a',\n'b'\n]\n'c'", "python", [1, 2, 3, 4]),
        ("x = \\\n'a'\n'b'", "python", [1, 2]),
        ('s = "#"; t = \'"\'\n# "\ny', "python", [1, 3]),
        ('"\\""  # x\nz', "python", [2]),
        ('broken = "no end\n# c\nz', "python", [1, 3]),
        ('"""never closed\n# c\n\nz', "python", [1, 2, 4]),
        (")]}\n'doc'", "python", [1]),
        ("def f(): '''\n# a\n'''\nx: '''\n'''\ng = lambda: '''\n'''", "python", [1, 4, 5, 6, 7]),
        ("int x; // y\n/* a\n b; */\n/* c */ z();", "c", [1, 4]),
        ('s = "/*";\nx;\n// */', "c", [1, 2]),
        ("c = '\"';\n// y\nx", "cpp", [1, 3]),
        ("/* never closed\nx;", "c", [1, 2]),
        ("/* /* */ */\nx", "rust", [2]),
        ("/* /* */\nx */", "c", [2]),
        ("fn f<'a>() {\n// '\n}", "rust", [1, 3]),
        ('r#"\n// no\n"#', "rust", [1, 2, 3]),
        ("a = `\n// no\n`\n// yes", "js", [1, 2, 3]),
        ("x = `\n//\\`\n// y", "go", [1, 2]),
        ("# a\necho ${#x} # it's\necho $#\n  # b", "bash", [2, 3]),
        ("-- a\nselect '--' /* b\n*/", "sql", [2]),
        ("--[[ a\nb ]]\nx = [[\n--\n]]", "lua", [3, 4, 5]),
        ("; a\n(f) #| x\n|#", "scheme", [2]),
        ("{- a {- b -}\nc -}\nx' = 1", "haskell", [3]),
        ("# a\n\n// b", "nobody knows it", [1, 3]),
    ],
)
def test_knows_comments_of_languages(program: str, language: str, code: list[int]) -> None:
    spans = split(program, "code-line", language=language)
    assert [line for line, span in enumerate(spans, start=1) if not span.neutral] == code


def test_every_language_keeps_length_and_ends() -> None:
    for name in (*LANGUAGES, "python"):
        for text in ("'", '"', '"""', "/*", "(*", "{-", 'r#"', "#|", "`", "--[[", "[[", "<!--"):
            assert len(mask_idle(text * 3 + "\n" + text, name)) == 4 * len(text) + 1


def test_in_a_response_with_fenced_blocks_only_their_lines_are_code() -> None:
    response = "So:\n```python\n# a\nx = 1\n```\nand\n~~~~c\n/* a */\ny;\n~~~\n~~~~\n```\n# z\nz"
    spans = split(response, "code-line")
    code = [
        text for text, span in zip(texts(response, spans), spans, strict=True) if not span.neutral
    ]
    assert code == ["x = 1\n", "y;\n", "~~~\n", "z"]


def test_a_fence_within_a_docstring_opens_no_block() -> None:
    program = 'def f():\n    """\n```python\nf()\n```\n    """\n    return 1\n'
    spans = split(program, "code-line")
    assert [span.neutral for span in spans] == [False, True, True, True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "c", "rust", "js", "bash", "lua", "haskell"])
@pytest.mark.parametrize(
    "part", ["'", '"', '\\"', '"""', "#", "/*", "*/", "{-", "[[", "`", "```\n", "'a' ", "[", "f'"]
)
def test_reading_code_takes_time_in_proportion_to_it(language: str, part: str) -> None:
    def measured(size: int) -> float:
        text = "x" + part * (size // len(part))
        return max(min(timed(text, language) for _ in range(2)), 2e-4)

    assert measured(40_000) < 80 * measured(4_000)


def timed(text: str, language: str) -> float:
    start = time.thread_time()  # what others do on this machine does not count
    mask_idle(text, language)
    return time.thread_time() - start


def test_given_steps_keep_their_borders() -> None:
    steps = ("a = 1\n# b", "\n", "# c\n", "d")
    assert [span.neutral for span in spans_of(steps, "code-line")] == [False, True, True, False]
    assert [span.neutral for span in spans_of(steps, "line")] == [False, True, False, False]
    assert texts("".join(steps), spans_of(steps, "auto")) == list(steps)


def lines_of_code(source: str) -> set[int]:
    """What Python's own tokenizer and parser make of it, less blank lines within strings."""
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    strings = {
        (node.lineno, node.col_offset, node.end_lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str | bytes)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        alone = token.type == tokenize.STRING and (*token.start, token.end[0]) in strings
        if token.type not in idle and token.type != tokenize.ENDMARKER and not alone:
            lines.update(range(token.start[0], token.end[0] + 1))
    texts = source.split("\n")
    return {line for line in lines if texts[line - 1].strip()}


def check_modules(paths: list[Path]) -> int:
    count = 0
    for path in paths:
        try:
            source = path.read_text()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = lines_of_code(source)
        except (SyntaxError, ValueError):
            continue
        spans = split(source, "code-line")
        found = {line for line, span in enumerate(spans, start=1) if not span.neutral}
        assert found == expected, path.name
        count += len(spans)
    return count


def modules() -> list[Path]:
    return sorted(
        path
        for path in Path(sysconfig.get_path("stdlib")).rglob("*.py")
        if "site-packages" not in path.parts
    )


def test_lines_of_code_are_those_of_pythons_tokenizer() -> None:
    assert check_modules(modules()[::40]) > 5_000


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_lines_of_code_are_those_of_pythons_tokenizer_everywhere() -> None:
    assert check_modules(modules()) > 200_000


@pytest.mark.parametrize(
    ("how", "expected"), [("min", 0.2), ("product", 0.08), ("last", 0.5), ("mean", 0.5)]
)
def test_aggregates(how: str, expected: float) -> None:
    assert aggregate([0.8, None, 0.2, 0.5, None], how) == pytest.approx(expected)


def test_nothing_but_neutral_steps_has_no_aggregate() -> None:
    with pytest.raises(ValueError, match="no step"):
        aggregate([None], "min")


@pytest.mark.parametrize(
    ("lines", "feasible", "expected"),
    [(17, 8, (8, 5)), (13, 7, (7, 3)), (0, 0, (0, 0)), (1, 0, (0, 1)), (15, 15, (15, 4))],
)
def test_finds_the_longest_feasible_prefix(
    lines: int, feasible: int, expected: tuple[int, int]
) -> None:
    assert search_prefix(lines, lambda count: count <= feasible) == expected


def test_prefix_search_agrees_with_the_reference(repository: Path) -> None:
    golden = repository.parent / "shared" / "design" / "golden.json"
    if not golden.is_file():
        pytest.skip("../shared/design/golden.json is absent")
    rows = [row for row in json.loads(golden.read_text()) if row["function"] == "prm_prefix_search"]
    assert rows
    for row in rows:
        known = row["inputs"]["largest_feasible_prefix"]
        found = search_prefix(
            row["inputs"]["line_count"], lambda count, known=known: count <= known
        )
        assert list(found) == row["expected"]


def test_labels_lines() -> None:
    idle = [False, True, False, True, False]
    assert label_lines(idle, 3) == (1, 0, 1, 0, -1)
    assert label_lines(idle, 0) == (-1, 0, -1, 0, -1)
    with pytest.raises(ValueError, match="6 of 5"):
        label_lines(idle, 6)


def rates(*chances: float):
    def answer(request: Request) -> Answer:
        assert isinstance(request, RateSteps)
        return StepsRated(chances, TOKENS)

    return answer


def test_a_step_head_reads_every_step_and_neutral_ones_have_no_score() -> None:
    item = CandidateSteps(QUESTION, "x = 1\n# why\ny = x / 0\n")
    settings = ResolvedStepSettings(splitting="code-line", aggregation="mean")
    scores, rounds = drive(score_steps(item, settings, HEAD, TEMPLATES), rates(0.75, 0.1, 0.25))
    (request,) = rounds[0]
    assert isinstance(request, RateSteps)
    assert request.steps == ("x = 1\n", "# why\n", "y = x / 0\n")
    assert not any(piece.trusted for message in request.prompt.messages for piece in message.pieces)
    assert [step.score for step in scores.steps] == [0.75, None, 0.25]
    assert [(step.start, step.end) for step in scores.steps] == [(0, 6), (6, 12), (12, 22)]
    assert (scores.aggregate, scores.first_error, scores.passed) == (0.5, 2, True)
    assert (scores.usage.prompt, scores.usage.cached, scores.unparsed_votes) == (10, 4, 0)


def test_the_threshold_is_the_callers_or_the_models() -> None:
    item = CandidateSteps(QUESTION, "one\ntwo")
    strict = ModelInfo("prm", "vllm", "r", HEAD.capabilities, 99, True, error_threshold=0.8)
    scores, _ = drive(score_steps(item, ResolvedStepSettings(), strict, TEMPLATES), rates(0.9, 0.7))
    assert (scores.error_threshold, scores.first_error, scores.passed) == (0.8, 1, False)
    own = ResolvedStepSettings(error_threshold=0.0)
    scores, _ = drive(score_steps(item, own, strict, TEMPLATES), rates(0.9, 0.7))
    assert (scores.error_threshold, scores.first_error, scores.passed) == (0.0, None, True)


def test_the_models_own_splitting_is_the_default() -> None:
    coder = ModelInfo(
        "prm", "vllm", "r", HEAD.capabilities, 99, deterministic=True, splitting="code-line"
    )
    item = CandidateSteps(QUESTION, "a\n\nb")
    scores, _ = drive(
        score_steps(item, ResolvedStepSettings(), coder, TEMPLATES), rates(0.9, 0.1, 0.8)
    )
    assert [step.score for step in scores.steps] == [0.9, None, 0.8]
    paragraphs = ResolvedStepSettings(splitting="paragraph")
    scores, _ = drive(score_steps(item, paragraphs, coder, TEMPLATES), rates(0.9, 0.8))
    assert len(scores.steps) == 2


def criticises(*votes: str):
    """Each vote is a string of c and w, one letter for each step; anything else is nonsense."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        vote = votes[request.seed % len(votes)]
        if set(vote) - {"c", "w"}:
            return Written(vote, "stop", TOKENS)
        words = {"c": "correct", "w": "wrong"}
        lines = [f"Looked at {n}.\nStep {n}: {words[letter]}" for n, letter in enumerate(vote, 1)]
        final = "wrong" if "w" in vote else "correct"
        return Written("\n".join([*lines, f"Verdict: {final}"]), "stop", TOKENS)

    return answer


def test_critiques_give_each_step_the_share_of_votes_that_call_it_right() -> None:
    item = CandidateSteps(QUESTION, "one\n\ntwo\n\nthree", ground_truth="4")
    settings = ResolvedStepSettings(votes=4, temperature=1.0)
    run = score_steps(item, settings, WRITER, TEMPLATES)
    scores, rounds = drive(run, criticises("ccc", "cww", "no verdict", "cwc"))
    assert len(rounds) == 1
    assert [request.seed for request in rounds[0]] == [0, 1, 2, 3]
    shares = [step.score for step in scores.steps]
    assert shares == pytest.approx([1.0, 1 / 3, 2 / 3])
    assert (scores.first_error, scores.unparsed_votes) == (1, 1)
    assert [step.critique for step in scores.steps] == [
        "Looked at 1.",
        "Looked at 2.",
        "Looked at 3.",
    ]
    assert scores.usage.prompt == 40


def test_a_tie_is_no_error_and_one_vote_decides() -> None:
    item = CandidateSteps(QUESTION, "one\ntwo")
    settings = ResolvedStepSettings(votes=2, temperature=1.0)
    scores, _ = drive(score_steps(item, settings, GENERATIVE, TEMPLATES), criticises("cw", "cc"))
    assert [step.score for step in scores.steps] == [1.0, 0.5]
    assert scores.first_error is None
    scores, _ = drive(
        score_steps(item, ResolvedStepSettings(), GENERATIVE, TEMPLATES), criticises("cw")
    )
    assert [step.score for step in scores.steps] == [1.0, 0.0]


def test_critiques_see_comments_but_give_them_no_verdict() -> None:
    item = CandidateSteps(QUESTION, "# why\nx = 1\n\n# end\n")
    settings = ResolvedStepSettings(splitting="code-line")
    scores, rounds = drive(score_steps(item, settings, WRITER, TEMPLATES), criticises("c"))
    (request,) = rounds[0]
    assert isinstance(request, Write)
    shown = text_of(request.prompt)
    assert "# why\nx = 1\n\n# end" in shown
    assert "[Step 2 " not in shown
    assert [step.score for step in scores.steps] == [None, 1.0, None, None]
    assert "".join(item.response[s.start : s.end] for s in scores.steps) == item.response


def test_a_meta_critique_refines_each_critique_before_it_counts() -> None:
    item = CandidateSteps(QUESTION, "one\ntwo")
    settings = ResolvedStepSettings(votes=2, temperature=1.0, meta_critique=True, seed=10)
    run = score_steps(item, settings, WRITER, TEMPLATES)
    scores, rounds = drive(
        run,
        lambda request: criticises("cc", "cc", "cw", "ww")(
            Write(request.prompt, 1, seed=request.seed - 10)
        ),
    )
    assert [len(asked) for asked in rounds] == [2, 2]
    assert [step.score for step in scores.steps] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("item", "settings", "model", "reason", "says"),
    [
        (
            CandidateSteps(QUESTION, " \n"),
            ResolvedStepSettings(),
            HEAD,
            "MISSING_RESPONSE",
            "empty",
        ),
        (
            CandidateSteps(QUESTION, "# a\n\n"),
            ResolvedStepSettings(splitting="code-line"),
            HEAD,
            "MISSING_RESPONSE",
            "none of the response's 2 steps",
        ),
        (
            CandidateSteps(QUESTION, "a\nb", steps=("a", "b")),
            ResolvedStepSettings(),
            HEAD,
            "INVALID_PARAMETER",
            "put together",
        ),
        (
            CandidateSteps(QUESTION, "ab", steps=("a", "", "b")),
            ResolvedStepSettings(),
            HEAD,
            "INVALID_PARAMETER",
            "step 1 is empty",
        ),
        (
            CandidateSteps(QUESTION, "a"),
            ResolvedStepSettings(splitting="tag"),
            HEAD,
            "INVALID_PARAMETER",
            "tag",
        ),
        (
            CandidateSteps(QUESTION, "a"),
            ResolvedStepSettings(),
            SCALAR,
            "INVALID_PARAMETER",
            "cannot score",
        ),
        (
            CandidateSteps(QUESTION, "a"),
            ResolvedStepSettings(),
            model_that(),
            "INVALID_PARAMETER",
            "nothing",
        ),
        (
            CandidateSteps(QUESTION, "a\n" * 4097),
            ResolvedStepSettings(),
            HEAD,
            "CONTEXT_TOO_LONG",
            "4096 tokens",
        ),
        (
            CandidateSteps(QUESTION, "a" * 300_000),
            ResolvedStepSettings(),
            HEAD,
            "CONTEXT_TOO_LONG",
            "far more",
        ),
        (
            CandidateSteps(QUESTION, "a"),
            ResolvedStepSettings(meta_critique=True),
            HEAD,
            "INVALID_PARAMETER",
            "no critiques",
        ),
        (
            CandidateSteps(QUESTION, "a"),
            ResolvedStepSettings(template="nobody"),
            WRITER,
            "UNKNOWN_TEMPLATE",
            "critique@1",
        ),
    ],
)
def test_refuses_before_it_asks(
    item: CandidateSteps, settings: ResolvedStepSettings, model: ModelInfo, reason: str, says: str
) -> None:
    with pytest.raises(Unjudgeable, match=says) as caught:
        next(score_steps(item, settings, model, TEMPLATES))
    assert caught.value.reason == reason


def test_nonsense_is_a_fault_with_the_raw_text() -> None:
    item = CandidateSteps(QUESTION, "one\ntwo")
    with pytest.raises(Unjudgeable) as caught:
        drive(
            score_steps(item, ResolvedStepSettings(), WRITER, TEMPLATES),
            criticises("I like it." * 999),
        )
    assert caught.value.reason == "JUDGE_UNPARSED"
    assert caught.value.metadata["raw_text"] == ("I like it." * 999)[:2000]


@pytest.mark.parametrize("chance", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_a_fault(chance: float) -> None:
    with pytest.raises(Unjudgeable) as caught:
        drive(
            score_steps(CandidateSteps(QUESTION, "a"), ResolvedStepSettings(), HEAD, TEMPLATES),
            rates(chance),
        )
    assert caught.value.reason == "SCORE_NOT_FINITE"


def test_a_prompt_of_several_messages_reaches_the_head_as_it_is() -> None:
    prompt = (ChatMessage("system", "Be brief."), ChatMessage("user", "Why?"))
    _, rounds = drive(
        score_steps(CandidateSteps(prompt, "a"), ResolvedStepSettings(), HEAD, TEMPLATES),
        rates(0.5),
    )
    (request,) = rounds[0]
    assert isinstance(request, RateSteps)
    assert [(one.role, one.text) for one in request.prompt.messages] == [
        ("system", "Be brief."),
        ("user", "Why?"),
    ]


@pytest.mark.data
def test_steps_of_human_labelled_solutions_are_found_again(shared_data: Path) -> None:
    """Joined by blank lines, the steps of PRM800K are its paragraphs where none holds any."""
    checked = 0
    with gzip.open(shared_data / "prm800k_clean_processes.jsonl.gz", "rt") as lines:
        for line in lines:
            steps = json.loads(line)["steps"]
            whole = all(step.strip() and "\n\n" not in step.strip("\n") for step in steps)
            if not whole or len(steps) < 2 or any("\n \n" in step for step in steps):
                continue
            response = "\n\n".join(step.strip("\n") for step in steps)
            found = texts(response, split(response, "auto"))
            assert [text.strip("\n") for text in found] == [step.strip("\n") for step in steps]
            checked += 1
            if checked == 300:
                break
    assert checked == 300


@pytest.mark.data
def test_comments_of_ten_languages_are_neutral_and_nothing_else_is(shared_data: Path) -> None:
    """MultiPL-E's prompts: a comment that explains, and the head of a function or a class."""
    hashes = {"rb": "#", "sh": "#"}
    counted = {True: 0, False: 0}
    with gzip.open(shared_data / "multipl_e.jsonl.gz", "rt") as lines:
        for line in list(lines)[::5]:
            row = json.loads(line)
            language = row["language"].removesuffix("_test.go")
            begins = (hashes.get(language, "//"), "/*", "*")
            for span in split(row["prompt"], "code-line", language=language):
                text = row["prompt"][span.start : span.end].strip()
                if text:
                    assert span.neutral == text.startswith(begins), (language, text)
                    counted[span.neutral] += 1
    assert min(counted.values()) > 2_000


@pytest.mark.parametrize(
    ("score", "expected"),
    [(-3.0, 0.0), (-1.0, 0.0), (-0.5, 0.25), (0.0, 0.5), (1.0, 1.0), (9.0, 1.0)],
)
def test_a_score_from_minus_one_to_one_is_a_chance_within_bounds(
    score: float, expected: float
) -> None:
    assert chance([score], 1, scores=True) == expected
