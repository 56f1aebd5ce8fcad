//! Syntax highlighting. syntect parses the code; a short table here maps its scopes to the colours of a terminal, so that
//! code looks like everything else in it.

use std::sync::OnceLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::style::{Color, Span, Style};
use crate::wrap::sanitize_line;

/// A longer line is data rather than code, and parsing it takes too long.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Highlights code line by line. It carries what spans lines, such as an open comment.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// None if the language is not known: all text stays plain.
    state: Option<(ParseState, ScopeStack)>,
}

impl Highlighter {
    /// For a language by any of its usual names: `rust`, `rs`, `sh` …
    pub(crate) fn new(language: &str) -> Self {
        let state = find_syntax(language).map(|syntax| (ParseState::new(syntax), ScopeStack::new()));
        Self { state }
    }

    /// The next line, without its end.
    pub(crate) fn highlight_line(&mut self, text: &str) -> Vec<Span> {
        let text = sanitize_line(text);
        if text.is_empty() && self.state.is_none() {
            return Vec::new();
        }
        let plain = || vec![Span::raw(text.as_ref())];
        let Some((state, scopes)) = self.state.as_mut().filter(|_| text.len() <= MAX_LINE_BYTES) else {
            return plain();
        };
        let line = format!("{text}\n");
        let Ok(changes) = state.parse_line(&line, syntaxes()) else {
            self.state = None;
            return plain();
        };
        let (mut spans, mut from) = (Vec::new(), 0);
        for (at, change) in changes {
            push_span(&mut spans, text.get(from..at.min(text.len())), scopes);
            from = at.max(from);
            if scopes.apply(&change).is_err() {
                *scopes = ScopeStack::new();
            }
        }
        push_span(&mut spans, text.get(from..), scopes);
        spans
    }
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").field("is_known", &self.state.is_some()).finish()
    }
}

fn push_span(spans: &mut Vec<Span>, text: Option<&str>, scopes: &ScopeStack) {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return };
    let style = scope_style(scopes);
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.push_str(text),
        _ => spans.push(Span::styled(text, style)),
    }
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The syntax for a language. Where syntect has none, one whose comments and strings look the same.
fn find_syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language.trim().to_ascii_lowercase();
    let name = match name.as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "output" | "console" | "markdown" | "md" => {
            return None;
        }
        "ts" | "tsx" | "jsx" | "mjs" | "cjs" | "mts" | "cts" | "typescript" | "json5" | "node" => "js",
        "jsonc" | "jsonl" | "ndjson" => "json",
        "toml" | "ini" | "cfg" | "conf" | "starlark" | "bzl" | "python3" | "py3" => "py",
        "shell" | "zsh" | "fish" | "dockerfile" | "docker" | "containerfile" | "env" => "sh",
        "kotlin" | "kt" | "kts" | "swift" | "dart" => "java",
        "golang" => "go",
        "vue" | "svelte" => "html",
        "scss" | "less" | "sass" => "css",
        "csharp" => "cs",
        "c++" | "hpp" | "cxx" | "cuda" => "cpp",
        "zig" | "glsl" | "hlsl" => "c",
        "patch" => "diff",
        "mysql" | "postgres" | "postgresql" | "sqlite" => "sql",
        other => other,
    };
    syntaxes().find_syntax_by_token(name)
}

/// The style of the innermost scope that has one.
fn scope_style(scopes: &ScopeStack) -> Style {
    let known = |scope: &Scope| styles().iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
    scopes.as_slice().iter().rev().find_map(known).map_or_else(Style::default, |(_, style)| *style)
}

/// Scopes and their styles; the first prefix that matches wins.
fn styles() -> &'static [(Scope, Style)] {
    static STYLES: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    STYLES.get_or_init(|| {
        let plain = Style::new();
        let dim = plain.dim();
        let table = [
            ("comment", dim),
            ("punctuation.definition.comment", dim),
            ("string", plain.fg(Color::Green)),
            ("punctuation.definition.string", plain.fg(Color::Green)),
            ("constant.character", plain.fg(Color::Cyan)),
            ("constant", plain.fg(Color::Cyan)),
            ("keyword.operator", plain),
            ("keyword", plain.fg(Color::Magenta)),
            ("storage.type.function", plain.fg(Color::Magenta)),
            ("storage", plain.fg(Color::Magenta)),
            ("entity.name.function", plain.fg(Color::Blue)),
            ("support.function", plain.fg(Color::Blue)),
            ("variable.function", plain.fg(Color::Blue)),
            ("entity.name.tag", plain.fg(Color::Magenta)),
            ("entity.other.attribute-name", plain.fg(Color::Yellow)),
            ("entity.name", plain.fg(Color::Yellow)),
            ("entity.other.inherited-class", plain.fg(Color::Yellow)),
            ("support.type", plain.fg(Color::Yellow)),
            ("support.class", plain.fg(Color::Yellow)),
            ("variable.annotation", plain.fg(Color::Yellow)),
            ("markup.inserted", plain.fg(Color::Green)),
            ("markup.deleted", plain.fg(Color::Red)),
            ("meta.diff", plain.fg(Color::Cyan)),
            ("meta.interpolation", plain),
        ];
        // A name that syntect can't parse as a scope gets no style.
        table.into_iter().filter_map(|(name, style)| Some((Scope::new(name).ok()?, style))).collect()
    })
}

#[cfg(test)]
#[path = "highlight_tests.rs"]
mod tests;
