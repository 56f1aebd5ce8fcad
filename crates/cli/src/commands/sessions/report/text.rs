//! The page for a terminal.

use std::io::Write;

use longhaul_journal::SessionEntry;

use super::figures::Figures;
use super::moment;
use super::story::Entry;
use crate::event_text::duration;
use crate::output::{count, in_words, safe, shortened};

pub(super) fn head(out: &mut dyn Write, session: &SessionEntry, figures: &Figures) -> anyhow::Result<()> {
    writeln!(out, "{}  {}", shortened(&session.key, 100), session.id)?;
    let put_away = if session.trashed { ", in the trash" } else { "" };
    let span = figures.span.map(|(first, last)| format!(", {} to {} UTC", moment(first), moment(last)));
    writeln!(out, "{}{}{put_away}", count(figures.records, "record"), span.unwrap_or_default())?;
    Ok(())
}

/// Says how many turns are left out, and how to see them.
pub(super) fn left_out(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    let many = count(figures.left_out(), "earlier turn");
    Ok(writeln!(out, "{many} left out: --all shows them, --html FILE writes a page")?)
}

pub(super) fn entry(out: &mut dyn Write, entry: &Entry) -> anyhow::Result<()> {
    match entry {
        Entry::Turn { number, at } => writeln!(out, "\n── turn {number} · {} ──", moment(*at))?,
        Entry::Said { text, images, .. } => {
            writeln!(out, "{}", before_each_line("> ", text))?;
            if *images > 0 {
                writeln!(out, "> [{}]", count(*images as u64, "image"))?;
            }
        }
        // It is long, and people look for what came of it.
        Entry::Thought(_) => {}
        Entry::Answer(text) => writeln!(out, "{}", safe(text.trim_end()))?,
        Entry::Unfinished(text) => writeln!(out, "{}\n[interrupted here]", safe(text.trim_end()))?,
        Entry::Aside(text) => writeln!(out, "{}", before_each_line("  ", text))?,
        Entry::Summary(text) => writeln!(out, "{}", before_each_line("  │ ", text))?,
        Entry::Ended { outcome, error, took_ms, steps, spent } => {
            if let Some(error) = error {
                writeln!(out, "  ✗ {}", shortened(error, 400))?;
            }
            let (took, steps) = (duration(*took_ms), count(*steps, "step"));
            writeln!(out, "  {} after {took}: {steps}, {}", in_words(*outcome), spent.in_words())?;
        }
        Entry::Gone { seq, kind, at, reason } => {
            let kind = shortened(kind, 40);
            writeln!(out, "  [seq {seq}, {kind}: gone since {}: {}]", moment(*at), shortened(reason, 80))?;
        }
        Entry::Damaged { seq, reason } => {
            writeln!(out, "  [seq {seq} damaged: {}]", shortened(reason, 200))?;
        }
    }
    Ok(())
}

pub(super) fn foot(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    writeln!(out, "\n── in all ──")?;
    figures.totals().iter().try_for_each(|total| writeln!(out, "{total}"))?;
    Ok(())
}

fn before_each_line(mark: &str, text: &str) -> String {
    let lines: Vec<String> = safe(text.trim_end()).lines().map(|line| format!("{mark}{line}")).collect();
    lines.join("\n")
}
