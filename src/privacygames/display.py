"""How results show themselves: as a table in notebooks, in LaTeX, and as a data frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from privacygames.errors import InvalidProblem

LATEX = {
    **{"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "ε": r"$\varepsilon$", "δ": r"$\delta$", "π": r"$\pi$"},
    **{"→": r"$\to$", "≤": r"$\leq$", "≥": r"$\geq$", "∞": r"$\infty$", "×": r"$\times$", "·": r"$\cdot$"},
}
"""Characters that mean something else to LaTeX, or that its default fonts do not have."""


@dataclass(frozen=True)
class ShownTable:
    """A table of texts, as people see it.

    Attributes:
        caption: what it is about.
        headings: of its columns.
        lines: its cells, line by line.
        texts: which columns are texts, aligned on the left; the first one always is.
    """

    caption: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    texts: Sequence[int] = ()

    def html(self) -> str:
        """HTML without scripts, links or style sheets; screen readers get the caption and the headings' scopes."""
        sides = ["left" if at == 0 or at in self.texts else "right" for at in range(len(self.headings))]

        def cell(text: str, at: int, scope: str = "") -> str:
            kind = f'th scope="{scope}"' if scope else "td"
            return f'<{kind} style="text-align: {sides[at]}">{escape(text)}</{kind[:2]}>'

        def row(line: Sequence[str]) -> str:
            return "".join(cell(text, at, "row" if text and not at else "") for at, text in enumerate(line))

        head = "".join(cell(text, at, "col") for at, text in enumerate(self.headings))
        body = "".join(f"<tr>{row(line)}</tr>" for line in self.lines)
        named = f"<thead><tr>{head}</tr></thead>" if any(self.headings) else ""
        return f"<table><caption>{escape(self.caption)}</caption>{named}<tbody>{body}</tbody></table>"

    def latex(self) -> str:
        """A ``tabular`` of LaTeX with the rules of booktabs."""
        columns = "".join("l" if at == 0 or at in self.texts else "r" for at in range(len(self.headings)))
        rows = [" & ".join(map(_latex, line)) + r" \\" for line in self.lines]
        named = [" & ".join(map(_latex, self.headings)) + r" \\", r"\midrule"] if any(self.headings) else []
        head = [f"% {self.caption}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *named]
        return "\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}", ""])


class Displayed:
    """Base class of results that show themselves as a table.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    >>> report = pg.evaluate(pg.design(problem, epsilon=1.0), problem)
    >>> report._repr_html_()[:42]
    '<table><caption>Cost and privacy</caption>'
    >>> report.to_latex().splitlines()[0]
    '% Cost and privacy'
    """

    __slots__ = ()

    def shown(self) -> ShownTable:
        """The table that people see."""
        raise NotImplementedError

    def _records(self) -> Sequence[Mapping[str, Any]]:
        """The values of a data frame, row by row: by default, what people see."""
        table = self.shown()
        names = table.headings if any(table.headings) else ("name", "value")
        return [dict(zip(names, line, strict=True)) for line in table.lines]

    def _repr_html_(self) -> str:
        return self.shown().html()

    def to_latex(self) -> str:
        """The table as a ``tabular`` of LaTeX, with the rules of booktabs."""
        return self.shown().latex()

    def to_pandas(self) -> Any:
        """The values as a pandas ``DataFrame``; pandas has to be installed."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidProblem("a data frame needs pandas: pip install pandas") from None
        return pd.DataFrame(list(self._records()))


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
