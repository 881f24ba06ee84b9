"""How a panel looks: the host's own colours, light and dark; nothing moves.

The class stands doubled, so that a rule is stronger than the host's for tables.
"""

from __future__ import annotations

CSS = """
.nbckpt{--t:var(--jp-ui-font-color1,var(--vscode-editor-foreground,CanvasText));\
--b:var(--jp-layout-color1,var(--vscode-editor-background,Canvas));\
--l:var(--jp-border-color2,var(--vscode-panel-border,#8886));\
--h:var(--jp-layout-color2,var(--vscode-list-hoverBackground,#8882));\
--ok:var(--jp-success-color1,#2e7d32);--run:var(--jp-brand-color1,#1976d2);\
--bad:var(--jp-error-color1,#d32f2f);--warn:var(--jp-warn-color1,#ef6c00);\
max-width:60em;color:var(--t);background:var(--b);\
font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif)}
.nbckpt.nbckpt p{margin:0;padding:4px 8px}
.nbckpt .now{display:flex;gap:8px;align-items:center;flex-wrap:wrap}
.nbckpt .bar{display:flex;height:6px;margin:0 8px;background:var(--h);\
border:1px solid var(--l)}
.nbckpt .bar i{flex:1;min-width:1px}
.nbckpt i.skipped,.nbckpt i.done{background:var(--ok)}
.nbckpt i.skipped{opacity:.6}
.nbckpt i.running,.nbckpt i.answered{background:var(--run)}
.nbckpt i.failed,.nbckpt i.interrupted{background:var(--bad)}
.nbckpt i.waiting,.nbckpt i.stale,.nbckpt i.again{background:var(--warn)}
.nbckpt.nbckpt table{width:100%;margin:0;border-collapse:collapse;\
table-layout:auto;font-size:inherit;color:inherit}
.nbckpt.nbckpt.nbckpt tr{background:none;border-bottom:1px solid var(--l)}
.nbckpt.nbckpt.nbckpt tr:hover{background:var(--h)}
.nbckpt.nbckpt th,.nbckpt.nbckpt td{padding:3px 8px;text-align:left;\
vertical-align:top;color:inherit}
.nbckpt.nbckpt td{overflow-wrap:anywhere}
.nbckpt.nbckpt tbody th{font-weight:400;min-width:9em;max-width:20em;\
overflow-wrap:break-word}
.nbckpt.nbckpt .running th,.nbckpt.nbckpt .failed th,\
.nbckpt.nbckpt .waiting th{font-weight:600}
.nbckpt.nbckpt thead th:last-child{text-align:right}
.nbckpt.nbckpt td:last-child{text-align:right;white-space:nowrap;\
font-variant-numeric:tabular-nums}
.nbckpt.nbckpt th+td{white-space:nowrap}
.nbckpt.nbckpt th+td+td{min-width:12em}
.nbckpt i[aria-hidden]{display:inline-block;width:1.3em;font-style:normal;\
font-weight:700;text-align:center}
.nbckpt .skipped i,.nbckpt .done i{color:var(--ok)}
.nbckpt .running i,.nbckpt .answered i{color:var(--run)}
.nbckpt .failed i,.nbckpt .interrupted i{color:var(--bad)}
.nbckpt .waiting i,.nbckpt .stale i,.nbckpt .again i{color:var(--warn)}
.nbckpt summary{cursor:pointer}
.nbckpt summary:focus-visible{outline:2px solid var(--run);outline-offset:-1px}
.nbckpt.nbckpt ul{margin:2px 0 2px 1.2em;padding:0}
.nbckpt.nbckpt li:has(>details){list-style:none;margin-left:-14px}
.nbckpt.nbckpt li ul{margin-left:2.4em}
.nbckpt.nbckpt code{background:none;padding:0;color:inherit;user-select:all;\
font:12px/1.5 var(--jp-code-font-family,monospace)}
.nbckpt progress{width:12em;height:8px;accent-color:var(--run)}
"""

# Both apps mark a widget whose model or kernel is gone, and ignore what is saved beside it.
ASKED_CSS = """
.jp-OutputArea-child:has(>* .nbckpt-asked)+.jp-OutputArea-child:is(\
:has(>.jupyter-widgets),:has(.jupyter-widgets-disconnected)){display:none}
"""
