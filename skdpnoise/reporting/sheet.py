"""Facts of a result, said once: shown as text, in one line, and as a card in notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skdpnoise.reporting.cards import card, facts_in_html, fold, table
from skdpnoise.sampling.words import with_caveat

__all__ = ["Sheet", "Shown", "sheet_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    kind: str = ""
    title: str
    promise: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    line: str = ""  # of a row in text, which has no rows without it
    changed: Sequence[str] = ()  # since what is told, in sentences
    above: str = ""  # HTML at the top of a card
    folded: str = ""  # title of a fold for the table and the facts in a card
    secure: bool = True

    @property
    def heading(self) -> str:
        return f"{self.kind} of {self.title}" if self.kind else self.title

    @property
    def headline(self) -> str:
        return f"{self.heading}: {self.promise}" if self.promise else self.heading

    def text(self) -> str:
        rows = [self.line.format(*row) for row in self.rows if self.line]
        lines = [*rows, *(f"{name}: {text}" for name, text in self.facts)]
        text = "\n".join([*self.changed, "\n  ".join([self.headline, *lines])])
        return with_caveat(text, secure=self.secure)

    def html(self) -> str:
        figures = table(self.head, self.rows) if self.rows else ""
        figures += facts_in_html(self.facts)
        body = self.above + (fold(self.folded, figures) if self.folded else figures)
        return card(self.heading, self.promise, body, secure=self.secure)


def sheet_of(shown: Shown) -> Sheet:
    return shown._sheet()


class Shown(ABC):
    """Base of what prints as text and as a card, by the facts of its sheet."""

    __slots__ = ()

    @abstractmethod
    def _sheet(self) -> Sheet:
        """Return the facts."""

    def __str__(self) -> str:
        return self._sheet().text()

    def __repr__(self) -> str:
        sheet = replace(self._sheet(), kind="")
        text = ". ".join([*sheet.changed, f"{type(self).__name__} of {sheet.headline}"])
        return f"<{with_caveat(text, secure=sheet.secure, end='. ')}>"

    def _repr_html_(self) -> str:
        return self._sheet().html()
