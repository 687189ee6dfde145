"""HTML by small pieces: text is escaped unless it is already markup, so nothing in a table can become a tag."""

from collections.abc import Sequence
from html import escape

VOID = frozenset({"img", "link", "meta"})
"""Elements that have no content and no end tag."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(element: str, /, *children: str, **attributes: str) -> Markup:
    """One element. ``class_`` is written ``class``, ``data_label`` is written ``data-label``."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"' for key, value in attributes.items()
    )
    if element in VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{together(*children)}</{element}>")


def together(*children: str) -> Markup:
    """Several pieces in a row."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child, quote=False) for child in children))


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, class_: str) -> Markup:
    """A table; each field also carries its column's name, which is shown instead of the head on narrow screens."""
    titles = together(*(tag("th", name, scope="col") for name in head))
    body = together(
        *(
            tag("tr", *(tag("td", field, data_label=name) for name, field in zip(head, row, strict=True)))
            for row in rows
        )
    )
    return tag("table", tag("thead", tag("tr", titles)), tag("tbody", body), class_=class_)


def page(title: str, *body: str) -> str:
    """A whole document that needs nothing from elsewhere: no scripts, no fonts, no style sheets."""
    head = together(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        Markup(f"<style>{STYLE}</style>"),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', tag('main', *body)), lang='en')}\n"


STYLE = """
:root { color-scheme: light dark; --paper: #fff; --card: #f6f7f8; --ink: #1c1f23; --soft: #59626c; --line: #d9dde1;
  --link: #005a9c; --good: #d8f0e4; --good-ink: #0a5a37; --part: #fdecc8; --part-ink: #6b4700; --bad: #fbdcd8;
  --bad-ink: #8a1c10; --none: #e6e9ec; --none-ink: #414a53; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191c; --card: #1f2429; --ink: #e6e9ec; --soft: #a2abb4;
  --line: #363d44; --link: #7cc0ff; --good: #0f4a30; --good-ink: #bff0d6; --part: #5a4208; --part-ink: #ffe6ad;
  --bad: #6a1f16; --bad-ink: #ffd4cd; --none: #3a4149; --none-ink: #d5dbe0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1.05rem; margin: 0 0 .5rem; }
a { color: var(--link); }
p { max-width: 48rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1rem 0; }
.soft, figcaption { color: var(--soft); }
.note { background: var(--part); color: var(--part-ink); padding: .6rem .9rem; border-radius: .4rem; }
.badge { display: inline-block; padding: .1rem .55rem; border-radius: .8rem; font-size: .85rem; font-weight: 600; }
.holds { background: var(--good); color: var(--good-ink); }
.except { background: var(--part); color: var(--part-ink); }
.fails { background: var(--bad); color: var(--bad-ink); }
.untested { background: var(--none); color: var(--none-ink); }
.tally { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; list-style: none; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .8rem .45rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
table.claims td:first-child { width: 30%; } table.claims td:nth-child(2) { min-width: 8.5rem; }
table.claims td:nth-child(3) { white-space: nowrap; }
table.numbers { width: auto; } table.numbers td { font-variant-numeric: tabular-nums; }
table.numbers :is(th, td):not(:first-child) { text-align: right; }
table.times :is(th, td):nth-child(2) { text-align: left; }
.figures { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; padding: 1rem; background: var(--card); border-radius: .5rem; scroll-margin-top: 1rem; }
figure img { display: block; width: 100%; max-width: 34rem; height: auto; margin: 0 auto; background: #fff;
  padding: .4rem; border-radius: .3rem; }
figcaption { font-size: .9rem; margin-top: .6rem; }
.files { font-size: .85rem; margin: .5rem 0 0; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .3rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; }
.scroll { overflow-x: auto; }
@media (max-width: 44rem) {
  table.claims thead { display: none; }
  table.claims, table.claims tbody, table.claims tr, table.claims td { display: block; width: auto !important; }
  table.claims tr { padding: .7rem 0; border-bottom: 1px solid var(--line); }
  table.claims td { border: 0; padding: .12rem 0; }
  table.claims td:not(:first-child, :nth-child(2))::before { content: attr(data-label) ": "; color: var(--soft); }
  table.claims td:first-child { font-weight: 600; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; }
  figure { padding: .75rem; }
}
@media print { figure { break-inside: avoid; } nav { display: none; } }
"""
