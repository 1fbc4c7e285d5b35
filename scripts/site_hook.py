"""Makes the site of docs/ whole: a hook of mkdocs (`mkdocs.yml`).

The pages are written for the repository, where a link may lead to any file. Here a link that
leaves docs/ leads to a copy within the site: a README as a page, another file as a listing, a
folder as the list of what is in it. A notebook is a page with what its cells print. Nothing points
at a host.

It also completes the navigation: `folder/*` stands for the folder's pages that are not named, and
pages that are named nowhere come last. And it refuses a page that fetches anything from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import notebooks

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*~*\s*?$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:|^//", re.IGNORECASE)
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//"
    r"|<link(?![^>]*rel=[\"']?canonical)[^>]+href=[\"']?(?:https?:)?//",
    re.IGNORECASE,
)
_LANGUAGES = {
    ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".proto": "protobuf",
    ".json": "json", ".sh": "bash", ".sql": "sql", ".c": "c",
}  # fmt: skip
_MOST_CHARS = 100_000
_LAST = "More"

# Where a page of the site stands in the repository, for the pages that are copies.
_origins: dict[str, str] = {}


def destination(path: str) -> str:
    """The page of the site that shows a file or folder of the repository.

    Args:
        path: relative to the repository, with slashes.
    """
    if path in {"docs", "README.md", "."}:
        return "index.md"
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    if (ROOT / path).is_dir():
        readme = f"{path}/README.md"
        return destination(readme) if (ROOT / readme).is_file() else f"source/{path}/index.md"
    if path.endswith("/README.md"):
        return f"source/{path.removesuffix('README.md')}index.md"
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` made to what is not in a fenced block."""
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


def targets(text: str, origin: str) -> Iterator[str]:
    """The paths in the repository that a text links to, as far as they are there.

    Args:
        text: Markdown.
        origin: the text's own path in the repository.
    """
    for link in [match[2] for match in _LINK.finditer(_FENCE.sub("", text))]:
        if link and not _ELSEWHERE.match(link):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), unquote(link)))
            if not path.startswith("..") and (ROOT / path).exists():
                yield path


def led_within(text: str, origin: str, page: str) -> str:
    """The text with its links leading to pages of the site.

    Args:
        text: Markdown.
        origin: the text's path in the repository.
        page: its path in the site.
    """

    def lead(match: re.Match[str]) -> str:
        link = match[2]
        if not link or _ELSEWHERE.match(link):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), unquote(link)))
        if path.startswith("..") or not (ROOT / path).exists():
            return match[0]
        to = posixpath.relpath(destination(path), posixpath.dirname(page) or ".")
        return f"{match[1]}{to}{match[3] or ''}{match[4]}"

    return outside_code(text, lambda part: _LINK.sub(lead, part))


def copy_of(path: str) -> str:
    """A page that shows a file or folder of the repository."""
    whole = ROOT / path
    if whole.is_dir():
        entries = sorted(p for p in whole.iterdir() if not p.name.startswith(("__", ".")))
        lines = [f"- `{p.name}{'/' if p.is_dir() else ''}`" for p in entries]
        return _unsearched(f"# {path}/\n\n" + "\n".join(lines) + "\n")
    if path.endswith(".ipynb"):
        return notebooks.as_page(whole)
    text = whole.read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    cut = text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "\n... (cut here)\n"
    language = _LANGUAGES.get(whole.suffix, "text")
    return _unsearched(f"# {path}\n\n~~~~~~{language}\n{cut}~~~~~~\n")


def _unsearched(text: str) -> str:
    return f"---\nsearch:\n  exclude: true\n---\n\n{text}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the copies, and completes the navigation."""
    from mkdocs.structure.files import File  # noqa: PLC0415  # tests of the rest have no mkdocs

    _origins.clear()
    pages = [file for file in files.documentation_pages() if file.content_string]
    todo = [t for f in pages for t in targets(f.content_string, f"docs/{f.src_uri}")]
    while todo:
        path = todo.pop()
        to = destination(path)
        if files.get_file_from_path(to) is None:
            file = ROOT / path
            path = f"{path}/README.md" if (file / "README.md").is_file() else path
            files.append(File.generated(config, to, content=copy_of(path)))
            _origins[to] = path
            if path.endswith((".md", ".ipynb")):
                todo += targets(copy_of(path), path)
    config.nav = completed_nav(config.nav or [], [file.src_uri for file in pages])
    return files


def completed_nav(nav: list[Any], pages: list[str]) -> list[Any]:
    """The navigation with `folder/*` written out, and what it does not name at its end.

    Args:
        nav: as in mkdocs.yml, sections of pages.
        pages: all pages that are no copies.
    """
    named = {page for section in nav for page in next(iter(section.values()))}
    left = sorted(set(pages) - named)
    whole = []
    for section in nav:
        ((title, listed),) = section.items()
        out = []
        for page in listed:
            if page.endswith("/*"):
                matching = [p for p in left if posixpath.dirname(p) == page.removesuffix("/*")]
                left = [p for p in left if p not in matching]
                out += matching
            else:
                out.append(page)
        whole.append({title: out})
    return [*whole, {_LAST: left}] if left else whole


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads the page's links to pages of the site."""
    uri = page.file.src_uri
    return led_within(markdown, _origins.get(uri, f"docs/{uri}"), uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses a page that fetches something from another host.

    Raises:
        SystemExit: it does.
    """
    found = _FETCHED.search(output)
    if found:
        raise SystemExit(f"{page.file.src_uri} fetches from elsewhere: {found[0]}")
    return output
