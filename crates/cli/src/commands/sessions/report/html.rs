//! The report as one HTML file that fetches nothing and runs nothing.

use std::io::Write;

use longhaul_protocol::SessionId;
use longhaul_transcript::html::{CONTENT_SECURITY_POLICY, HtmlRenderer, STYLE_SHEET, escape, time_element};
use longhaul_transcript::{Update, format_count, zone_name};

use super::chart;
use super::figures::Figures;

/// A page that is being written.
pub(super) struct HtmlPage<'a> {
    out: &'a mut dyn Write,
    renderer: HtmlRenderer,
}

impl<'a> HtmlPage<'a> {
    /// Writes the head of the page, the totals and the charts.
    pub(super) fn begin(
        out: &'a mut dyn Write,
        key: &str,
        id: SessionId,
        figures: &Figures,
    ) -> anyhow::Result<Self> {
        let key = escape(key);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"generator\" content=\"longhaul {}\"/>\n<title>{key}</title>\n<style>{STYLE_SHEET}</style>\n</head>\n\
             <body>\n<header>\n<h1>{key}</h1>\n<p class=\"id\">session {}, {}",
            env!("CARGO_PKG_VERSION"),
            id,
            format_count(figures.records, "entry"),
        )?;
        if let Some((first, last)) = figures.span {
            let zone = zone_name(last).unwrap_or_default();
            write!(out, ", {} to {} {zone}", time_element(first), time_element(last))?;
        }
        writeln!(out, "</p>\n</header>\n<main>\n<section aria-label=\"Total\">")?;
        for total in figures.totals() {
            writeln!(out, "<p class=\"words\">{}</p>", escape(&total))?;
        }
        chart::write(out, figures)?;
        writeln!(out, "</section>")?;
        Ok(Self { out, renderer: HtmlRenderer::new() })
    }

    pub(super) fn push(&mut self, update: &Update) -> anyhow::Result<()> {
        Ok(self.out.write_all(self.renderer.render(update).as_bytes())?)
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.out, "{}</main>\n</body>\n</html>", self.renderer.end())?)
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
