"""Where the program stands in a chat response."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.commands.run import language_of
from assay.kit.fences import Block, fenced_blocks
from assay.reward_server.verifiers.code_text import CHOICES, extract_code
from assay.sandbox.languages import LANGUAGES

ONE = "print(1)\n"
TWO = "print(2)\n"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code", ()),
        (f"```python\n{ONE}```", (Block("python", ONE),)),
        (f"~~~ python\n{ONE}~~~\n", (Block("python", ONE),)),
        (f"```` py\n```\n{ONE}````", (Block("py", f"```\n{ONE}"),)),
        (f"```\n{ONE}~~~\n```", (Block("", f"{ONE}~~~\n"),)),
        (f"```python\n{ONE}```\nand\n```\n{TWO}```", (Block("python", ONE), Block("", TWO))),
        (f"```python\n{ONE}", (Block("python", ONE, closed=False),)),
        (
            f"1. so:\n   ```python\n   if x:\n       {ONE}   ```",
            (Block("python", f"if x:\n    {ONE}"),),
        ),
        ("```python\n\n```", ()),
        ("use ```print(1)``` here", ()),
        ("```print(1)```\n", ()),
        (f"``` {{.python}}\n{ONE}```", (Block("python", ONE),)),
        ("```Python title=x\r\nprint(1)\r\n```", (Block("python", "print(1)\r\n"),)),
        (
            f"```python\n{ONE}``` not the end\n{TWO}```",
            (Block("python", f"{ONE}``` not the end\n{TWO}"),),
        ),
    ],
)
def test_blocks_as_models_write_them(text: str, blocks: tuple[Block, ...]) -> None:
    assert fenced_blocks(text) == blocks


@pytest.mark.parametrize(
    ("response", "language", "code"),
    [
        (f"```python\n{ONE}```\nbetter:\n```python\n{TWO}```", "python", TWO),
        (f"```python\n{ONE}```\noutput:\n```\n1\n```", "python", ONE),
        (f"```\n{ONE}```\nrun it:\n```bash\npython x.py\n```", "python", ONE),
        (f"```text\n{ONE}```", "python", ONE),
        (f"```c++\nint x;\n```\n```python\n{ONE}```", "cpp", "int x;\n"),
        (f"<think>```python\n{ONE}```</think>\n```python\n{TWO}```", "python", TWO),
        (f"<think>```python\n{ONE}```</think>\nI do not know.", "python", None),
        (f"```python\n{ONE}", "python", ONE),
        ("def f(x):\n    return x\n", "python", "def f(x):\n    return x\n"),
        ("import os\n", "python", "import os\n"),
        ("print(1)", "python", "print(1)"),
        ("hello", "python", None),
        ("I think it is 42.", "python", None),
        ("Note: this", "python", None),
        ("", "python", None),
        ("x = 1", "go", None),
        ("x = " + "(" * 250 + ")" * 250, "python", None),
        (r"print('\d')", "python", r"print('\d')"),
        ("x = " + "-" * 15_000 + "1", "python", None),
        ("x = 1\n" * 20_000, "python", None),
    ],
)
def test_the_last_fitting_block_is_the_program(
    response: str, language: str, code: str | None
) -> None:
    assert extract_code(response, language) == code


def test_choices() -> None:
    response = f"```python\n{ONE}```\n```python\nprint('longest')\n```\n```python\n{TWO}```"
    assert extract_code(response, "python", "first") == ONE
    assert extract_code(response, "python", "longest") == "print('longest')\n"
    assert extract_code(response, "python", "last") == TWO
    assert extract_code(response, "python", "all") == f"{ONE}\nprint('longest')\n\n{TWO}"
    assert extract_code(response, "python", "whole") == response
    assert extract_code(" \n", "python", "whole") is None


LINES = st.lists(
    st.sampled_from(["```", "~~~", "````", "  ```python", "```py", "x = 1", "", "text", "</think>"])
    | st.text(max_size=12),
    max_size=30,
).map("\n".join)


@given(LINES, st.sampled_from(["python", "cpp"]), st.sampled_from(CHOICES))
def test_whatever_the_response_the_program_is_of_it(
    response: str, language: str, choice: str
) -> None:
    code = extract_code(response, language, choice)
    if code is None:
        return
    assert code.strip()
    if choice != "all":
        for line in code.splitlines():
            assert line.strip() in response


@given(
    st.text(
        st.characters(
            exclude_characters="`~\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", exclude_categories=["Cs"]
        )
    )
)
def test_what_is_fenced_comes_out_as_it_is(code: str) -> None:  # fmt: skip
    if "</think>" in code or not code.strip():
        return
    body = code if code.endswith("\n") else code + "\n"
    assert extract_code(f"Here:\n```python\n{body}```\nDone.", "python") == body


def test_it_is_linear_in_the_text() -> None:
    # A quadratic scan of either would outlast the suite's time limit by far.
    extract_code("```" * 700_000, "python")
    extract_code("```python\n" * 300_000, "python")
    extract_code(" " * 3_000_000 + "`", "python")


@pytest.mark.parametrize("name", [name for name in LANGUAGES if LANGUAGES[name].test_kinds])
def test_a_language_is_known_by_its_name_and_by_the_suffix_of_its_files(name: str) -> None:
    language = LANGUAGES[name]
    suffix = PurePosixPath(language.main(language.self_test)).suffix
    assert language_of(Path(f"x{suffix}")) in (name, name.removesuffix("_ut"))
    for tag in (name.removesuffix("_ut"), suffix[1:]):
        text = f"```text\nno\n```\n```{tag}\nyes\n```\n```text\nno\n```"
        assert extract_code(text, name) == "yes\n", tag
