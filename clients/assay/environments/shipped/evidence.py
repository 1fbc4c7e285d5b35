"""What a search showed, and whether it suffices: the tools over a corpus, and the check.

The same policy, as the agent "checker", answers from what was shown and nothing else (TimeSearch-R,
arXiv 2511.05489; search self-play, 2510.18821).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from assay.clients.types import Result
from assay.environments.environment import Environment, ToolError, ToolResult, tool
from assay.environments.shipped.answers import AnswerJudge, said, tagged
from assay.environments.shipped.corpus import Corpus, CorpusDocument, open_corpus
from assay.environments.types import EpisodeMessage, Observation, Reply

CHECKER = "checker"
TOOLS = ("search", "open_document")
_CHECK = (
    "Answer the question from the documents alone. Where they do not hold the answer, answer "
    "<answer>unknown</answer>. Write a short answer between <answer> and </answer>."
)


class Evidence:
    """Documents that were shown in an episode, each as it was shown."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._titles: dict[str, str] = {}

    @property
    def shown(self) -> Mapping[str, str]:
        """Texts by id, in the order of their first showing; the longest that was shown."""
        return self._shown

    def show(self, document: CorpusDocument, most_chars: int) -> str:
        """The document's text for the policy, noted as shown."""
        text = document.text[:most_chars]
        if len(text) > len(self._shown.get(document.id, "")):
            self._shown[document.id] = text
        self._titles[document.id] = document.title
        return entry(document.id, document.title, text)

    def entries(self) -> list[str]:
        """What was shown, an entry for each document."""
        return [entry(name, self._titles[name], text) for name, text in self._shown.items()]


def entry(name: str, title: str, text: str) -> str:
    """A document as it is shown."""
    return f"[{name}] {title}\n{text}" if title else f"[{name}]\n{text}"


def check(question: str, entries: Sequence[str], most_chars: int) -> Observation:
    """What the checker reads: the question and documents, which is all that it has."""
    documents = "\n\n".join(entries)[:most_chars]
    text = f"<evidence>\n{documents}\n</evidence>\n\n<question>\n{question}\n</question>"
    messages = (EpisodeMessage("system", _CHECK), EpisodeMessage("user", text))
    return Observation(messages, CHECKER, CHECKER, tools=())


async def sufficiency(judge: AnswerJudge, reply: Reply, right: Sequence[str]) -> Result:
    """How right the checker's answer is, in [0, 1]; a fault where nobody could say."""
    return await judge.answer(tagged(said(reply), "answer") or "", right)


class CorpusEnvironment(Environment):
    """Tools over the corpus of the settings; `shared` is a `Corpus`.

    Attributes:
        evidence: of who is searching now.
        queries: of who is searching now, in order.
    """

    # A search is quick, and what was shown is known by the calls that were really made.
    repeatable = False

    def __init__(self, settings: Any = None, shared: Any = None, services: Any = None) -> None:
        super().__init__(settings, shared, services)
        self.evidence = Evidence()
        self.queries: list[str] = []

    @classmethod
    @contextmanager
    def open(cls, settings: Any) -> Iterator[Corpus]:
        """Reads and indexes the corpus; see `open_corpus`."""
        yield open_corpus(settings.corpus, keep_index=settings.keep_index)

    @tool
    def search(self, query: str, count: int = 3) -> ToolResult:
        """Searches the documents for words.

        Args:
            query: what to look for, in a few words.
            count: how many documents to show.
        """
        self.refuse_tools()
        if not query.strip():
            raise ToolError("search: the query is blank")
        self.queries.append(query.strip())
        most = min(max(count, 1), self.settings.most_documents)
        found = self.shared.find(query, most)
        if not found:
            return ToolResult("no document shares a word with the query", facts={"documents": []})
        texts = [self.evidence.show(one, self.settings.search_chars) for one in found]
        return ToolResult("\n\n".join(texts), facts={"documents": [one.id for one in found]})

    @tool
    def open_document(self, id: str) -> ToolResult:  # noqa: A002  # the policy's word for it
        """Shows one document at more length.

        Args:
            id: as in square brackets in what a search showed.
        """
        self.refuse_tools()
        name = id.strip().removeprefix("[").removesuffix("]")
        document = self.shared.document(name)
        if document is None or name not in self.evidence.shown:
            raise ToolError("open_document: no search showed a document of this id")
        text = self.evidence.show(document, self.settings.open_chars)
        return ToolResult(text, facts={"documents": [name]})

    def refuse_tools(self) -> None:
        """Raises ToolError where no tool may be called now."""
