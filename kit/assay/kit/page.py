"""One page of HTML that needs nothing beside it: no script, one style, a strict policy. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

_STYLE = """
:root { --ink: #1a1d21; --soft: #5b6470; --line: #d9dee4; --paper: #fff; --bad: #b3261e;
  --warn: #8a5a00; --good: #1b6e3c; --tint: #f5f7f9 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #9aa4b1; --line: #333a43;
  --paper: #15181c; --bad: #ff8a80; --warn: #ffca6a; --good: #7bd99b; --tint: #1d2127 } }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem }
p { margin: .4rem 0 } .soft { color: var(--soft) } .fail, .hole { color: var(--bad) }
.warn, .warning { color: var(--warn) } .pass { color: var(--good) }
.big { font-size: 1.25rem; font-weight: 600; margin: 1rem 0 }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
  gap: .75rem; margin: 1rem 0 }
.figures div { background: var(--tint); border-radius: .5rem; padding: .75rem 1rem }
.figures b { display: block; font-size: 1.5rem }
table { border-collapse: collapse; width: 100% } .wide { overflow-x: auto }
td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; text-align: left;
  vertical-align: top; font-variant-numeric: tabular-nums }
th { font-weight: 600; font-size: .85rem } td.n, th.n { text-align: right }
meter { width: 5rem; height: .7rem }
pre { background: var(--tint); border-radius: .4rem; margin: .4rem 0; padding: .6rem .8rem;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 16rem; overflow: auto;
  font-size: .85rem }
details { border-top: 1px solid var(--line); padding: .6rem 0 }
summary { cursor: pointer; font-weight: 600 }
"""
_CSP = "sha256-" + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def page(title: str, command: str, parts: Iterable[str]) -> str:
    """A page of HTML; `parts` are its body and already escaped, `command` made it."""
    policy = f"default-src 'none'; style-src '{_CSP}'; form-action 'none'; base-uri 'none'"
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f'<header><p class="soft">{escape(command)}</p><h1>{escape(title)}</h1></header><main>',
        *parts,
        "</main></body></html>",
    ]
    return "\n".join(lines) + "\n"
