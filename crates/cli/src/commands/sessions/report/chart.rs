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

/// A chart that is being drawn.
struct Chart {
    svg: String,
    points: usize,
    /// The value at the top.
    most: f64,
}

impl Chart {
    /// The start of a chart: its description for screen readers, grid lines and labels.
    fn begin(
        (id, title, description): (&str, &str, &str),
        most: f64,
        label: impl Fn(f64) -> String,
        points: &[ChartPoint],
    ) -> Self {
        let mut chart = Self { svg: String::new(), points: points.len(), most };
        chart.push(format_args!(
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-words\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-words\">{description}</desc>"
        ));
        let (tick, right) = (tick(most), WIDTH - RIGHT);
        let mut value = 0.0;
        while value <= most {
            let y = chart.y(value);
            chart.push(format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ));
            chart.text(LEFT - 8.0, y + 4.0, "end", &label(value));
            value += tick;
        }
        let every = points.len().div_ceil(8).max(1);
        let mut last = None;
        for (place, point) in points.iter().enumerate().step_by(every) {
            if last.replace(point.turn) != Some(point.turn) {
                chart.text(chart.x(place), HEIGHT - 8.0, "middle", &format!("turn {}", point.turn));
            }
        }
        chart
    }

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

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = writeln!(self.svg, "{element}");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, words: &str) {
        self.push(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"));
    }

    /// A line through the points, with a gap where one has no value.
    fn line(&mut self, class: &str, values: impl Iterator<Item = Option<f64>>) {
        let mut path = String::new();
        let mut is_down = false;
        for (place, value) in values.enumerate() {
            if let Some(value) = value {
                let step = if is_down { 'L' } else { 'M' };
                let _ = write!(path, "{step}{:.1} {:.1}", self.x(place), self.y(value));
            }
            is_down = value.is_some();
        }
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// The area between the values and the bottom.
    fn area(&mut self, values: impl Iterator<Item = (usize, f64)>) {
        let corners = values.map(|(place, value)| format!("{:.1} {:.1}", self.x(place), self.y(value)));
        let corners: Vec<String> = corners.collect();
        if corners.len() > 1 {
            let (from, to, floor) = (self.x(0), self.x(self.points - 1), self.y(0.0));
            let corners = corners.join("L");
            self.push(format_args!(
                "<path class=\"area\" d=\"M{from:.1} {floor:.1}L{corners}L{to:.1} {floor:.1}Z\"/>"
            ));
        }
    }

    fn dot(&mut self, place: usize, value: f64, words: &str) {
        let (x, y) = (self.x(place), self.y(value));
        self.push(format_args!(
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{words}</title></circle>"
        ));
    }

    /// Marks compactions between the point before them and the one after; those that came between the same two share a mark.
    fn mark(&mut self, together: &[ChartCompaction]) {
        let Some(ChartCompaction { point, .. }) = together.first() else { return };
        let (last, point) = (self.points.saturating_sub(1), *point);
        let x = (self.x(point.saturating_sub(1).min(last)) + self.x(point.min(last))) / 2.0;
        let (top, floor, left, above) = (TOP, self.y(0.0), x - 5.0, TOP - 8.0);
        let words = together.iter().map(compaction_text).collect::<Vec<_>>().join("; ");
        self.push(format_args!(
            "<g><title>{words}</title>\
             <line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{floor:.1}\"/>\
             <path class=\"head\" d=\"M{left:.1} {above:.1}h10l-5 8Z\"/></g>"
        ));
    }

    fn end(mut self, caption: &str) -> String {
        self.push(format_args!("</svg>\n<figcaption>{caption}</figcaption>\n</figure>"));
        self.svg
    }
}

fn context(figures: &Figures) -> String {
    let Figures { points, compactions, .. } = figures;
    let tokens = |point: &ChartPoint| point.tokens.map(|tokens| tokens as f64);
    let window = |point: &ChartPoint| point.window.map(|window| window as f64);
    let most = points.iter().flat_map(|point| [tokens(point), window(point)]).flatten().fold(1.0, f64::max);
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
    let head = ("context", "Tokens in the context", description.as_str());
    let mut chart = Chart::begin(head, most * 1.04, short, points);
    chart.area(points.iter().enumerate().filter_map(|(place, point)| Some((place, tokens(point)?))));
    chart.line("window", points.iter().map(window));
    if let Some(window) = last_window.map(|window| window as f64) {
        let y = chart.y(window) + 14.0;
        chart.text(WIDTH - RIGHT, y, "end", &format!("window {}", short(window)));
    }
    chart.line("context", points.iter().map(tokens));
    let together = compactions.chunk_by(|one, other| one.point == other.point);
    together.for_each(|together| chart.mark(together));
    if points.len() <= MAX_CHART_DOTS {
        for (place, point) in points.iter().enumerate() {
            let Some(value) = tokens(point) else { continue };
            let count = format_number(value as u64);
            chart.dot(place, value, &format!("turn {}, step {}: {count} tokens", point.turn, point.step));
        }
    }
    let several = match figures.steps_per_point {
        1 => String::new(),
        steps => format!(" Each point covers up to {steps} steps and shows the fullest."),
    };
    let marks = if compactions.is_empty() { "" } else { " Dotted lines with a triangle: compactions." };
    chart.end(&format!("Tokens in the context after each step; dashed: the window.{marks}{several}"))
}

fn compaction_text(compaction: &ChartCompaction) -> String {
    let (before, after) = (format_number(compaction.before), format_number(compaction.after));
    format!("compaction {}: {before} → {after} tokens", compacted_by_text(compaction.by))
}

fn cost(figures: &Figures) -> String {
    let points = &figures.points;
    let Some(total) = figures.spend.cost else {
        return "<p class=\"aside\">No cost chart: the price of this model is unknown.</p>\n".to_owned();
    };
    let (steps, money) = (format_count(figures.steps, "step"), format_money(total));
    let description = format!("A rising line over {steps}, to {money} in the end.");
    let most = if total > 0.0 { total * 1.04 } else { 1.0 };
    let mut chart = Chart::begin(("cost", "Cost so far", description.as_str()), most, format_money, points);
    chart.line("cost", points.iter().map(|point| point.cost));
    if points.len() == 1 {
        chart.dot(0, total, &money);
    }
    chart.end("Total cost so far, in US dollars.")
}

/// The numbers of the charts.
fn table(out: &mut dyn Write, figures: &Figures) -> anyhow::Result<()> {
    let number = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), format_number);
    writeln!(out, "<details><summary>As a table</summary>\n<div class=\"scroll\">\n<table>")?;
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
