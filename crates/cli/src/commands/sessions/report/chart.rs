//! The charts as SVG: tokens in the context and cost, step by step, with the compactions marked; and the same numbers in a table.

use std::fmt::Write as _;
use std::io::Write;

use longhaul_transcript::{compacted_by_text, format_count, format_money, format_number};

use super::figures::{ChartCompaction, ChartPoint, Figures};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 28.0;
/// With more points than this there are no dots to point at.
const MAX_CHART_DOTS: usize = 150;

pub(super) fn write(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    if figures.points.is_empty() {
        return Ok(());
    }
    out.write_all(context(figures).as_bytes())?;
    out.write_all(cost(figures).as_bytes())?;
    table(out, figures)
}

/// The scale of a chart.
struct Frame {
    points: usize,
    /// The value at the top.
    most: f64,
}

impl Frame {
    fn x(&self, point: usize) -> f64 {
        let width = WIDTH - LEFT - RIGHT;
        match self.points {
            0 | 1 => LEFT + width / 2.0,
            points => LEFT + width * point as f64 / (points - 1) as f64,
        }
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / self.most)
    }

    /// The start of a chart: its description for screen readers, grid lines and labels.
    fn begin(
        &self,
        id: &str,
        title: &str,
        description: &str,
        label: impl Fn(f64) -> String,
        points: &[ChartPoint],
    ) -> String {
        let mut svg = format!(
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-words\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-words\">{description}</desc>\n"
        );
        let tick = tick(self.most);
        let mut value = 0.0;
        while value <= self.most {
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - RIGHT
            );
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                label(value)
            );
            value += tick;
        }
        let every = points.len().div_ceil(8).max(1);
        let mut last = None;
        for (place, point) in points.iter().enumerate().step_by(every) {
            if last.replace(point.turn) != Some(point.turn) {
                let (x, y) = (self.x(place), HEIGHT - 8.0);
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">turn {}</text>",
                    point.turn
                );
            }
        }
        svg
    }

    /// A line through the points, with a gap where one has no value.
    fn line(&self, class: &str, values: impl Iterator<Item = Option<f64>>) -> String {
        let mut path = String::new();
        let mut is_down = false;
        for (place, value) in values.enumerate() {
            if let Some(value) = value {
                let step = if is_down { 'L' } else { 'M' };
                let _ = write!(path, "{step}{:.1} {:.1}", self.x(place), self.y(value));
            }
            is_down = value.is_some();
        }
        format!("<path class=\"{class}\" d=\"{path}\"/>\n")
    }
}

fn context(figures: &Figures) -> String {
    let Figures { points, compactions, .. } = figures;
    let tokens = |point: &ChartPoint| point.tokens.map(|tokens| tokens as f64);
    let window = |point: &ChartPoint| point.window.map(|window| window as f64);
    let most = points.iter().flat_map(|point| [tokens(point), window(point)]).flatten().fold(1.0, f64::max);
    let frame = Frame { points: points.len(), most: most * 1.04 };
    let fullest = points.iter().filter_map(|point| point.tokens).max().unwrap_or(0);
    let last_window = points.iter().rev().find_map(|point| point.window);
    let of =
        last_window.map(|window| format!(" of a window of {}", format_number(window))).unwrap_or_default();
    let description = format!(
        "A line over {}. At its fullest the context had {} tokens{of}; {}.",
        format_count(figures.steps, "step"),
        format_number(fullest),
        format_count(compactions.len() as u64, "compaction")
    );
    let mut svg = frame.begin("context", "Tokens in the context", &description, short, points);
    let floor = frame.y(0.0);
    let with_tokens = points.iter().enumerate().filter_map(|(place, point)| Some((place, tokens(point)?)));
    let area: Vec<String> =
        with_tokens.map(|(place, value)| format!("{:.1} {:.1}", frame.x(place), frame.y(value))).collect();
    if area.len() > 1 {
        let (from, to) = (frame.x(0), frame.x(points.len() - 1));
        let _ = writeln!(
            svg,
            "<path class=\"area\" d=\"M{from:.1} {floor:.1}L{}L{to:.1} {floor:.1}Z\"/>",
            area.join("L")
        );
    }
    svg.push_str(&frame.line("window", points.iter().map(window)));
    if let Some(window) = last_window {
        let y = frame.y(window as f64) + 14.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">window {}</text>",
            WIDTH - RIGHT,
            short(window as f64)
        );
    }
    svg.push_str(&frame.line("context", points.iter().map(tokens)));
    let together = compactions.chunk_by(|one, other| one.point == other.point);
    together.for_each(|together| svg.push_str(&mark(&frame, together)));
    if points.len() <= MAX_CHART_DOTS {
        for (place, point) in points.iter().enumerate() {
            let Some(value) = tokens(point) else { continue };
            let (x, y) = (frame.x(place), frame.y(value));
            let words =
                format!("turn {}, step {}: {} tokens", point.turn, point.step, format_number(value as u64));
            let _ = writeln!(
                svg,
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{words}</title></circle>"
            );
        }
    }
    let several = match figures.steps_per_point {
        1 => String::new(),
        steps => format!(" Each point stands for up to {steps} steps, with the fullest of them."),
    };
    let marks = if compactions.is_empty() { "" } else { " Dotted lines with a triangle: compactions." };
    let _ = writeln!(
        svg,
        "</svg>\n<figcaption>Tokens in the context after each step; dashed: the window.{marks}{several}</figcaption>\n</figure>"
    );
    svg
}

/// Compactions stand between the point before them and the one after; those that came between the same two share a mark.
fn mark(frame: &Frame, together: &[ChartCompaction]) -> String {
    let Some(ChartCompaction { point, .. }) = together.first() else { return String::new() };
    let (last, point) = (frame.points.saturating_sub(1), *point);
    let x = (frame.x(point.saturating_sub(1).min(last)) + frame.x(point.min(last))) / 2.0;
    let (top, floor) = (TOP, frame.y(0.0));
    let words: Vec<String> = together.iter().map(in_words).collect();
    format!(
        "<g><title>{}</title>\
         <line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{floor:.1}\"/>\
         <path class=\"head\" d=\"M{:.1} {:.1}h10l-5 8Z\"/></g>\n",
        words.join("; "),
        x - 5.0,
        top - 8.0,
    )
}

fn in_words(compaction: &ChartCompaction) -> String {
    let ChartCompaction { before, after, by, .. } = compaction;
    format!(
        "compaction {}: {} tokens became {}",
        compacted_by_text(*by),
        format_number(*before),
        format_number(*after)
    )
}

fn cost(figures: &Figures) -> String {
    let points = &figures.points;
    let Some(total) = figures.spend.cost else {
        return "<p class=\"aside\">No prices are known for this model, so there is no chart of the cost.</p>\n".to_owned();
    };
    let frame = Frame { points: points.len(), most: if total > 0.0 { total * 1.04 } else { 1.0 } };
    let description = format!(
        "A rising line over {}, to {} in the end.",
        format_count(figures.steps, "step"),
        format_money(total)
    );
    let mut svg = frame.begin("cost", "Cost so far", &description, format_money, points);
    svg.push_str(&frame.line("cost", points.iter().map(|point| point.cost)));
    if points.len() == 1 {
        let _ = writeln!(
            svg,
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
            frame.x(0),
            frame.y(total)
        );
    }
    svg.push_str(
        "</svg>\n<figcaption>What everything had cost so far, in US dollars.</figcaption>\n</figure>\n",
    );
    svg
}

/// The numbers of the charts.
fn table(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    let number = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), format_number);
    writeln!(out, "<details><summary>The same in numbers</summary>\n<div class=\"scroll\">\n<table>")?;
    writeln!(
        out,
        "<thead><tr><th scope=\"col\">turn</th><th scope=\"col\">step</th><th scope=\"col\">tokens in the context</th>\
         <th scope=\"col\">window</th><th scope=\"col\">cost so far</th><th scope=\"col\">compaction before it</th></tr></thead>\n<tbody>"
    )?;
    let mut compactions = figures.compactions.iter().peekable();
    for (place, point) in figures.points.iter().enumerate() {
        let is_last = place + 1 == figures.points.len();
        let mut before = Vec::new();
        while let Some(compaction) = compactions.next_if(|compaction| compaction.point <= place || is_last) {
            let when = if compaction.point > place { "then " } else { "" };
            before.push(format!(
                "{when}{} → {}",
                format_number(compaction.before),
                format_number(compaction.after)
            ));
        }
        let cost = point.cost.map_or_else(|| "–".to_owned(), format_money);
        let (tokens, window) = (number(point.tokens), number(point.window));
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{tokens}</td><td>{window}</td><td>{cost}</td><td>{}</td></tr>",
            point.turn,
            point.step,
            before.join(", ")
        )?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>\n</details>")?;
    Ok(())
}

/// A round distance between grid lines, so that there are at most six.
fn tick(most: f64) -> f64 {
    let rough = (most / 5.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    factor * power
}

/// A count for a label: `800`, `12.5k`, `2M`.
fn short(value: f64) -> String {
    let with = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    match value {
        value if value >= 1e6 => with(value / 1e6, "M"),
        value if value >= 1e3 => with(value / 1e3, "k"),
        value => format!("{value:.0}"),
    }
}
