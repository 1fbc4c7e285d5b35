"""The documentation is true as far as can be told without running it: links lead somewhere, code
compiles and imports what there is, commands and settings are ones that we have."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import runpy
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from bench.__main__ import BENCHES
from experiments.__main__ import CONTESTS

from assay.cli.main import cli
from assay.clients.services import installed_services
from assay.genrm.config import read_models
from assay.kit.errors import ConfigError
from assay.reward_server.__main__ import cli as reward_cli
from assay.reward_server.profiles.reading import read_profiles
from assay.trainer.data.suites import read_suites
from assay.trainer.recipes.chain import plan as chain_plan
from assay.trainer.recipes.code_prm import config as pipelines
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.reward_model import config as rm_configs
from assay.trainer.settings import config as configs
from assay.trainer.settings.overrides import expand
from assay.trainer.settings.registry import part_names
from docs_support import Block, anchors, blocks, commands, links, pages, text_of

# Blocks that are a part of a whole which a test of its own runs, and import nothing themselves.
PLACEHOLDERS = re.compile(r"\.\.\.|…|\bPATH\b|\bFILE\b|\bFOLDER\b|\bNAME\b")

READERS = ("use", "train", "operate", "extend", "understand")


@pytest.fixture(scope="module")
def all_blocks(repository: Path) -> list[Block]:
    return list(blocks(repository))


def test_links_lead_to_what_is_there(repository: Path) -> None:
    known = {page: anchors(text_of(page)) for page in pages(repository)}
    broken = []
    count = 0
    for link in links(repository):
        count += 1
        page = repository / link.page
        target = (page.parent / link.path).resolve() if link.path else page
        if not target.exists():
            broken.append(f"{link.page}: {link.path}")
        elif link.anchor and link.anchor not in known.get(target, {link.anchor}):
            broken.append(f"{link.page}: {link.path}#{link.anchor}")
    assert broken == []
    assert count > 300


def test_each_page_says_first_whom_it_is_for(repository: Path) -> None:
    """And what they can do after it; those of reference and trainers follow a plan of their own."""
    docs = repository / "docs"
    found = [page for reader in READERS for page in (docs / reader).rglob("*.md")]
    found += (docs / "notebooks").glob("*.ipynb")
    assert len(found) > 50
    for page in found:
        title, opening, *_ = [part for part in text_of(page).split("\n\n") if part[:4] != "<!--"]
        assert title.startswith("# "), page
        assert "\n" not in title, page
        assert opening.startswith("For whoever "), page


@pytest.mark.parametrize("folder", ["use/verifiers", "understand/results"])
def test_the_anchors_of_a_page_that_was_split_are_those_of_its_index(
    repository: Path, folder: str
) -> None:
    """So that a link to the one page of old, `verifiers.md#math`, needs a new path and no more."""
    index = repository / "docs" / folder / "index.md"
    own = anchors(index.read_text(encoding="utf-8"))
    others = sorted(set(index.parent.glob("*.md")) - {index})
    assert len(others) >= 8
    for page in others:
        text = page.read_text(encoding="utf-8")
        title = next(iter(anchors(text.partition("\n")[0])))
        assert anchors(text) - {title} <= own, page


def test_python_compiles_and_imports_what_there_is(all_blocks: list[Block]) -> None:
    found = [block for block in all_blocks if block.language == "python"]
    assert len(found) > 50
    for block in found:
        tree = compile(
            block.text, str(block), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay."):
                module = _imported(node.module or "")
                if module is None:
                    continue
                for name in node.names:
                    assert hasattr(module, name.name), f"{block}: {node.module}.{name.name}"


def _imported(name: str) -> ModuleType | None:
    """The module; None for an adapter whose trainer is not installed here."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "assay").partition(".")[0] == "assay":
            raise
        return None


def test_json_is_json(all_blocks: list[Block]) -> None:
    for block in all_blocks:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "jsonl":
            [json.loads(line) for line in block.text.splitlines()]


def test_settings_are_those_that_we_have(
    all_blocks: list[Block], tmp_path: Path, repository: Path
) -> None:
    seen = set()
    shutil.copytree(repository / "configs", tmp_path / "configs")
    for block in all_blocks:
        if block.language != "toml":
            continue
        tree = tomllib.loads(block.text)
        if block.page.startswith("docs/trainers/"):
            continue  # the settings of other people's trainers
        if block.page == "docs/extend/add-a-method.md" and "method" in tree:
            continue  # of the package that the page makes; test_add_a_method.py loads them
        kind = next(iter(tree))
        seen.add(kind)
        file = tmp_path / "configs" / "ladders" / "block.toml"
        file.write_text(block.text)
        match kind:
            case "profile":
                assert read_profiles(block.text, str(block))
            case "model" if all(isinstance(value, dict) for value in tree["model"].values()):
                assert read_models(file)
            case "base":
                assert plan.load(file, ["data.path=rows.jsonl"]).rungs
            case "stage":
                assert chain_plan.load(file, ["data.path=rows.jsonl"], tmp_path)
            case "port":
                assert reward_cli.make_context("reward", ["--config", str(file)])
            case "units":
                assert set(read_suites(file)) == {"units"}
            case "build-system" | "project":
                assert tree["project"]
            case _:
                mixed = tree.get("data", {}).get("source") == "mixture"
                assert configs.load(file, [] if mixed else ["data.path=rows.jsonl"]), block
    assert {"profile", "model", "base", "project", "port", "units"} <= seen


def test_commands_are_those_that_we_have(repository: Path) -> None:
    made = set(re.findall(r"^([a-z-]+):", (repository / "Makefile").read_text(), re.MULTILINE))
    seen = set()
    for block, words in commands(repository):
        seen.add(" ".join(words[:2]))
        try:
            _check(words, repository, made)
        except (click.ClickException, ConfigError, AssertionError) as error:
            message = error.format_message() if isinstance(error, click.ClickException) else error
            pytest.fail(f"{block}: {' '.join(words)}: {message}")
    assert {"assay train", "assay score", "assay ladder", "make test", "python -m"} <= seen


def _check(words: list[str], repository: Path, made: set[str]) -> None:
    """One command, by our own parsers."""
    match words:
        case ["make", *targets]:
            assert {word for word in targets if "=" not in word} <= made, "no such target"
        case ["python", "-m", "bench", *names]:
            assert set(names[:1]) <= set(BENCHES), "no such measurement"
        case ["python", "-m", "experiments", *names]:
            assert set(names[:1]) <= {*CONTESTS, "claim"}, "no such contest"
        case ["python", "-m", module, *arguments] | ["assay", "serve", module, *arguments]:
            package = installed_services()[_service(module)].module
            _parse(importlib.import_module(package).cli, arguments)
        case ["assay", name, *arguments]:
            command = cli.get_command(click.Context(cli), name)  # type: ignore[attr-defined]
            assert command is not None, "no such command"
            while isinstance(command, click.Group):
                name, *arguments = arguments
                found = command.get_command(click.Context(command), name)
                assert found is not None, "no such command"
                command = found
            _settings(words[1], _parse(command, arguments), repository)


def _service(module: str) -> str:
    names = {"assay.reward_server": "reward", "assay.sandbox": "sandbox", "assay.genrm": "genrm"}
    return names.get(module, module)


def _parse(command: click.Command, arguments: list[str]) -> list[str]:
    """What is no option; options that there are not, or that lack a value, are errors of click."""
    context = click.Context(command, info_name=command.name, **command.context_settings)
    options, rest, order = command.make_parser(context).parse_args(list(arguments))
    positional = [p for p in order if isinstance(p, click.Argument)]
    if rest and not context.ignore_unknown_options:
        raise click.UsageError(f"unexpected {rest}")
    given: list[str] = []
    for parameter in positional:
        value = options.get(parameter.name or "")
        given += value if isinstance(value, list | tuple) else [value]
    return [value for value in given if isinstance(value, str)]


def _settings(name: str, given: list[str], repository: Path) -> None:
    """Config files and their overrides, by the loader that the command itself uses."""
    if not given or not given[0].startswith("configs/"):
        return
    path, texts = (
        repository / given[0],
        [text for text in given[1:] if not PLACEHOLDERS.search(text)],
    )
    expanded = expand(texts)
    assert set(expanded.ablate) <= set(part_names()), "no such part"
    overrides = [*expanded.texts]
    match name:
        case "train":
            assert configs.load(path, overrides)
        case "ladder":
            assert plan.load(path, overrides).rungs
        case "train-rm":
            assert rm_configs.load(path, texts)
        case "code-prm":
            assert pipelines.load(path, texts, Path("runs/none"))


def test_nothing_of_ours_is_said_to_be_on_an_index(all_blocks: list[Block]) -> None:
    """What is not there would not be found, or be somebody else's; extras of the installed are."""
    for block in all_blocks:
        found = re.search(r"pip install (?:[^\n#]* )?assay-", block.text)
        assert found is None, f"{block}: {found[0]}"


def test_marked_blocks_say_what_they_print(all_blocks: list[Block]) -> None:
    marked = [block for block in all_blocks if block.runs]
    assert len(marked) >= 2
    assert all(block.prints for block in marked)


def test_every_verifier_tells_its_limits(repository: Path) -> None:
    script = runpy.run_path(str(repository / "scripts" / "verifiers_doc.py"))
    verifiers = [one for family in script["families_here"]().values() for one in family]
    assert len(verifiers) >= 40
    for verifier in verifiers:
        module = inspect.getmodule(getattr(verifier, "function", type(verifier)))
        assert "**Known limits.** " in script["prose"](module.__doc__ or ""), verifier.spec.name
        assert verifier.examples, verifier.spec.name


def test_every_verifier_says_its_measured_error(repository: Path) -> None:
    script = runpy.run_path(str(repository / "scripts" / "verifiers_doc.py"))
    assert script["unmeasured"]() == []
    said = script["prose"]("`x`: judges.\n\nMeasured: on 20 rows of a set: no difference.")
    assert "**Measured.** On 20 rows" in said
    # A verifier without one is named, and no page is written.
    script["unmeasured"].__globals__["_LEADS"] = {}
    with pytest.raises(ValueError, match=r"exact, .*'Measured: \.\.\.'"):
        script["render"]()


@pytest.fixture(scope="module")
def hook(repository: Path) -> dict[str, Any]:
    """The site's hook, as far as it needs no mkdocs; `make docs` builds the whole."""
    return runpy.run_path(str(repository / "scripts" / "site_hook.py"))


def test_links_out_of_docs_lead_to_copies(hook: dict[str, Any]) -> None:
    led = hook["led_within"]
    text = "[a](../configs/dapo.toml), [b](../clients/README.md#faults), [c](methods.md), `[d](x)`"
    wanted = "[a](source/configs/dapo.toml.md), [b](source/clients/index.md#faults), "
    wanted += "[c](methods.md), `[d](x)`"
    assert led(text, "docs/page.md", "page.md") == wanted
    back = led("[x](../docs/reference/errors.md#a)", "clients/README.md", "source/clients/index.md")
    assert back == "[x](../../reference/errors.md#a)"
    code = "```\n[a](../configs/dapo.toml)\n```\n"
    assert led(code, "docs/page.md", "page.md") == code
    assert led("[a](https://example.org/x)", "docs/a.md", "a.md") == "[a](https://example.org/x)"


def test_no_page_is_left_out(hook: dict[str, Any]) -> None:
    nav = [{"A": ["a.md", "x/*"]}]
    whole = hook["completed_nav"](nav, ["a.md", "x/1.md", "x/2.md", "y.md"])
    assert whole == [{"A": ["a.md", "x/1.md", "x/2.md"]}, {"More": ["y.md"]}]


def test_what_the_navigation_names_is_there(repository: Path) -> None:
    text = (repository / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"- (\S+\.md)$", text, re.MULTILINE)
    assert len(named) > 25
    for name in named:
        copied = name.removeprefix("source/").replace("index.md", "README.md")
        notebook = f"docs/{name.removesuffix('.md')}.ipynb"
        assert any((repository / path).is_file() for path in (f"docs/{name}", copied, notebook)), (
            name
        )


def test_nothing_is_fetched_from_elsewhere(hook: dict[str, Any]) -> None:
    fetched = hook["_FETCHED"]
    assert fetched.search('<script src="https://example.org/a.js">')
    assert fetched.search('<link rel="stylesheet" href="//example.org/a.css">')
    assert not fetched.search('<a href="https://example.org/">x</a><script src="a.js"></script>')


def test_what_the_reference_takes_from_docstrings_is_there(repository: Path) -> None:
    text = (repository / "docs" / "reference" / "clients.md").read_text()
    named = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(named) > 10
    for name in named:
        module, _, attribute = name.rpartition(".")
        owner = importlib.import_module(module)
        assert hasattr(owner, attribute) or importlib.import_module(name), name
