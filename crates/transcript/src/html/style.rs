//! The style sheet of the HTML, for light and dark screens. It refers to nothing outside of itself.

/// The browser fetches nothing and runs nothing, whatever the session says.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub const STYLE_SHEET: &str = "
:root { color-scheme: light dark; --page: #fbfbf9; --ink: #1d2226; --quiet: #5c666e; --line: #d9dcd8; --said: #eef3f8;
  --context: #1f6feb; --window: #8a5a00; --cost: #0b7a4b; --mark: #b3261e; --wrong: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #15181b; --ink: #e4e7e9; --quiet: #9aa5ad; --line: #343a40;
  --said: #1e2832; --context: #6cb0ff; --window: #e0b060; --cost: #5fd39b; --mark: #ff8a80; --wrong: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h2 time { font-weight: normal; color: var(--quiet); margin-left: .6rem; }
.words { white-space: pre-wrap; overflow-wrap: anywhere; margin: .6rem 0; }
.said { background: var(--said); border-left: 3px solid var(--context); border-radius: 4px; padding: .5rem .8rem; }
.asked { border-left: 3px solid var(--window); padding-left: .8rem; }
.markdown, .markdown li { overflow-wrap: anywhere; }
.markdown h3, .markdown h4, .markdown h5, .markdown h6 { font-size: 1rem; margin: 1rem 0 .3rem; }
.markdown li > p { margin: .1rem 0; }
blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); }
pre, code { font: .88rem/1.45 ui-monospace, monospace; }
pre { margin: .4rem 0; padding: .4rem .6rem; border: 1px solid var(--line); border-radius: 4px; overflow-x: auto;
  max-height: 30rem; }
.aside, .notice, .note, .state, .description, .meta, .ended, .id, .block footer, figcaption { color: var(--quiet); font-size: .88rem; }
.aside, .notice { font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .15rem 0; }
.wrong, .bad, .del { color: var(--wrong); }
.good, .add { color: var(--cost); }
.add, .del { text-decoration: none; }
.number, .quiet, .context .number { color: var(--quiet); }
.hl-comment { color: var(--quiet); }
.hl-string { color: var(--cost); }
.hl-keyword, .hl-deleted { color: var(--mark); }
.hl-constant, .hl-function { color: var(--context); }
.hl-type { color: var(--window); }
dl { margin: .3rem 0; }
dt { color: var(--quiet); }
dd { margin: 0 0 0 1rem; overflow-wrap: anywhere; }
.center { text-align: center; }
details { margin: .5rem 0; font-size: .92rem; }
summary { cursor: pointer; color: var(--quiet); white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 34rem; height: auto; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); stroke-width: 1; }
svg .context { fill: none; stroke: var(--context); stroke-width: 2; stroke-linejoin: round; }
svg .area { fill: var(--context); opacity: .14; }
.dot { fill: var(--context); }
.window { fill: none; stroke: var(--window); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .cost { fill: none; stroke: var(--cost); stroke-width: 2; stroke-linejoin: round; }
.mark { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 2 3; }
.head { fill: var(--mark); }
.scroll { max-height: 24rem; overflow: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.right, .scroll th, .scroll td { text-align: right; }
th, td { padding: .15rem .7rem; border-bottom: 1px solid var(--line); }
@media print { pre, details .scroll { max-height: none; } }
";
