//! The report as a page in the terminal.

use std::io::Write;

use longhaul_journal::SessionEntry;
use longhaul_transcript::{format_count, format_period, truncate};

use super::figures::Figures;

pub(super) fn write_head(
    out: &mut dyn Write,
    session: &SessionEntry,
    figures: &Figures,
) -> anyhow::Result<()> {
    writeln!(out, "{}  {}", truncate(&session.key, 100), session.id)?;
    let trashed = if session.trashed { ", in the trash" } else { "" };
    let span = figures.span.map(|(first, last)| format!(", {}", format_period(first, last)));
    writeln!(out, "{}{}{trashed}", format_count(figures.records, "entry"), span.unwrap_or_default())?;
    Ok(())
}

/// Says that turns are left out, and how to see them.
pub(super) fn write_left_out(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    let many = format_count(figures.left_out(), "earlier turn");
    Ok(writeln!(out, "{many} not shown; use --all to show all, or --html FILE")?)
}

pub(super) fn write_totals(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    writeln!(out, "\n── total ──")?;
    figures.totals().iter().try_for_each(|total| writeln!(out, "{total}"))?;
    Ok(())
}
