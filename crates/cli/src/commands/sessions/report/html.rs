//! The page for a browser: one file that fetches nothing and runs nothing.

use std::io::Write;

use longhaul_protocol::{At, SessionId};

use super::figures::Figures;
use super::story::Entry;
use super::style::{POLICY, SHEET};
use super::{chart, moment};
use crate::event_text::duration;
use crate::output::{count, in_words, safe};

pub(super) struct Page<'a> {
    out: &'a mut dyn Write,
    is_in_turn: bool,
}

impl<'a> Page<'a> {
    /// The head of the page, the totals and the charts.
    pub(super) fn begin(
        out: &'a mut dyn Write,
        key: &str,
        id: SessionId,
        figures: &Figures,
    ) -> anyhow::Result<Self> {
        let key = escaped(key);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"generator\" content=\"longhaul {}\"/>\n<title>{key}</title>\n<style>{SHEET}</style>\n</head>\n\
             <body>\n<header>\n<h1>{key}</h1>\n<p class=\"id\">session {}, {}",
            env!("CARGO_PKG_VERSION"),
            id,
            count(figures.records, "record"),
        )?;
        if let Some((first, last)) = figures.span {
            write!(out, ", {} to {} UTC", time(first), time(last))?;
        }
        writeln!(out, "</p>\n</header>\n<main>\n<section aria-label=\"In all\">")?;
        for total in figures.totals() {
            writeln!(out, "<p class=\"words\">{}</p>", escaped(&total))?;
        }
        chart::write(out, figures)?;
        writeln!(out, "</section>")?;
        Ok(Self { out, is_in_turn: false })
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> anyhow::Result<()> {
        match entry {
            Entry::Turn { number, at } => {
                self.close()?;
                self.is_in_turn = true;
                writeln!(self.out, "<section id=\"turn-{number}\">\n<h2>Turn {number} {}</h2>", time(*at))?;
            }
            Entry::Said { text, images, .. } => {
                self.words("said", text)?;
                if *images > 0 {
                    self.line("aside", &format!("with {}", count(*images as u64, "image")))?;
                }
            }
            Entry::Thought(text) => self.folded("what it thought", text)?,
            Entry::Answer(text) => self.words("answer", text)?,
            Entry::Unfinished(text) => {
                self.words("answer", text)?;
                self.line("aside", "[interrupted here]")?;
            }
            Entry::Aside(text) => {
                self.line(if text.starts_with('✗') { "aside wrong" } else { "aside" }, text)?;
            }
            Entry::Summary(text) => self.folded("what the context begins with from here on", text)?,
            Entry::Ended { outcome, error, took_ms, steps, spent } => {
                if let Some(error) = error {
                    self.line("aside wrong", &format!("✗ {error}"))?;
                }
                let (took, steps) = (duration(*took_ms), count(*steps, "step"));
                let ended = format!("{} after {took}: {steps}, {}", in_words(*outcome), spent.in_words());
                self.line("ended", &ended)?;
                self.close()?;
            }
            Entry::Gone { seq, kind, at, reason } => {
                self.line("aside", &format!("[seq {seq}, {kind}: gone since {}: {reason}]", moment(*at)))?;
            }
            Entry::Damaged { seq, reason } => {
                self.line("aside wrong", &format!("[seq {seq} damaged: {reason}]"))?;
            }
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.close()?;
        Ok(writeln!(self.out, "</main>\n</body>\n</html>")?)
    }

    fn close(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.is_in_turn) {
            writeln!(self.out, "</section>")?;
        }
        Ok(())
    }

    fn words(&mut self, class: &str, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(
            self.out,
            "<div class=\"words {class}\" dir=\"auto\">{}</div>",
            escaped(text.trim_end())
        )?)
    }

    fn line(&mut self, class: &str, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.out, "<p class=\"{class}\">{}</p>", escaped(text))?)
    }

    fn folded(&mut self, what: &str, text: &str) -> anyhow::Result<()> {
        writeln!(self.out, "<details><summary>{what}</summary>")?;
        self.words("answer", text)?;
        Ok(writeln!(self.out, "</details>")?)
    }
}

fn time(at: At) -> String {
    format!("<time datetime=\"{at}\">{}</time>", moment(at))
}

/// Text from anywhere, escaped for content and attributes, without characters that change the text direction.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in safe(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Marks of direction that have no use of their own between words.
            '\u{200e}' | '\u{200f}' | '\u{061c}' => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
