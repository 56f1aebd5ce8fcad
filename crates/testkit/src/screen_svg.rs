use std::fmt::Write;

use vt100::Color;

use crate::TerminalScreen;

const COLUMN_WIDTH: f64 = 8.4;
const ROW_HEIGHT: f64 = 20.0;
const FONT_SIZE: f64 = 14.0;
const MARGIN: f64 = 18.0;
const BACKGROUND: [u8; 3] = [0x13, 0x17, 0x1f];
const FOREGROUND: [u8; 3] = [0xd8, 0xde, 0xe9];
/// The sixteen colours that a terminal has by name.
const NAMED_COLOURS: [[u8; 3]; 16] = [
    [0x3b, 0x42, 0x52],
    [0xf0, 0x7a, 0x84],
    [0x8f, 0xcf, 0x8a],
    [0xe9, 0xc4, 0x6a],
    [0x7a, 0xb0, 0xf5],
    [0xc9, 0x9c, 0xf2],
    [0x6f, 0xcf, 0xd6],
    [0xc0, 0xc8, 0xd4],
    [0x76, 0x80, 0x92],
    [0xff, 0x9a, 0xa2],
    [0xa9, 0xe2, 0xa3],
    [0xf6, 0xd7, 0x8a],
    [0x9c, 0xc6, 0xff],
    [0xdb, 0xb8, 0xff],
    [0x91, 0xe4, 0xea],
    [0xff, 0xff, 0xff],
];

/// How a run of text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TextStyle {
    colour: [u8; 3],
    background: Option<[u8; 3]>,
    is_bold: bool,
    is_italic: bool,
    is_underlined: bool,
}

/// What stands side by side and looks the same.
struct StyledRun {
    column: u16,
    columns: u16,
    text: String,
    style: TextStyle,
}

impl TerminalScreen {
    /// The screen as a picture that needs nothing else: its own background, and text that can be read aloud and copied. `name` says
    /// what it shows. Words that differ from one run to the next are replaced by others of the same length.
    pub fn to_svg(&self, name: &str, replaced: &[(&str, &str)]) -> String {
        let rows: Vec<Vec<StyledRun>> = (0..self.rows().len()).map(|row| self.runs(row, replaced)).collect();
        let (width, _) = self.size();
        let across = f64::from(width) * COLUMN_WIDTH + 2.0 * MARGIN;
        let down = rows.len() as f64 * ROW_HEIGHT + 2.0 * MARGIN;
        let name = escaped(name);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across:.0} {down:.0}\" width=\"{across:.0}\" height=\"{down:.0}\" \
             role=\"img\" aria-labelledby=\"name\" xml:space=\"preserve\">\n<title id=\"name\">{name}</title>\n<style>text{{font:{FONT_SIZE}px ui-monospace,\
             SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",\"Liberation Mono\",monospace;white-space:pre}}"
        );
        let mut styles: Vec<TextStyle> = Vec::new();
        for run in rows.iter().flatten() {
            if !styles.contains(&run.style) {
                let _ = write!(out, ".{}{{{}}}", class(styles.len()), css(&run.style));
                styles.push(run.style);
            }
        }
        let _ = write!(
            out,
            "</style>\n<rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"9\" fill=\"{}\" stroke=\"#2c3442\"/>\n",
            across - 1.0,
            down - 1.0,
            hex(BACKGROUND)
        );
        let (column, row) = self.cursor();
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{COLUMN_WIDTH}\" height=\"{:.1}\" fill=\"{}\" opacity=\".75\"/>",
            left_of(column),
            top_of(usize::from(row)) + 1.5,
            ROW_HEIGHT - 3.0,
            hex(FOREGROUND)
        );
        for (row, runs) in rows.iter().enumerate() {
            for run in runs {
                write_run(&mut out, row, run, &styles);
            }
        }
        out + "</svg>\n"
    }

    fn runs(&self, row: usize, replaced: &[(&str, &str)]) -> Vec<StyledRun> {
        let (width, _) = self.size();
        let row = u16::try_from(row).unwrap();
        let mut runs: Vec<StyledRun> = Vec::new();
        for column in 0..width {
            let Some(cell) = self.cell(column, row).filter(|cell| !cell.is_wide_continuation()) else {
                continue;
            };
            let columns = if cell.is_wide() { 2 } else { 1 };
            let text = if cell.has_contents() { cell.contents() } else { " " };
            let mut style = style(cell);
            // A space looks like whatever stands before it.
            if text == " " && style.background.is_none() && !style.is_underlined {
                style = runs
                    .last()
                    .filter(|run| run.style.background.is_none() && !run.style.is_underlined)
                    .map_or(style, |run| run.style);
            }
            match runs.last_mut() {
                Some(run) if run.style == style => {
                    run.text.push_str(text);
                    run.columns += columns;
                }
                _ => runs.push(StyledRun { column, columns, text: text.to_owned(), style }),
            }
        }
        for run in &mut runs {
            for (from, to) in replaced {
                run.text = run.text.replace(from, to);
            }
            if run.style.background.is_none() {
                let kept = run.text.trim_end().len();
                run.columns -= u16::try_from(run.text.len() - kept).unwrap();
                run.text.truncate(kept);
            }
        }
        runs.retain(|run| !run.text.is_empty());
        runs
    }
}

fn write_run(out: &mut String, row: usize, run: &StyledRun, styles: &[TextStyle]) {
    let (left, length) = (left_of(run.column), f64::from(run.columns) * COLUMN_WIDTH);
    if let Some(background) = run.style.background {
        let top = top_of(row);
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{ROW_HEIGHT}\" fill=\"{}\"/>",
            hex(background)
        );
    }
    // Whatever font there is, columns stand below each other.
    let class = class(styles.iter().position(|style| *style == run.style).unwrap_or(0));
    let spaces = run.text.len() - run.text.trim_start().len();
    let (left, length) = (left + spaces as f64 * COLUMN_WIDTH, length - spaces as f64 * COLUMN_WIDTH);
    let text = escaped(run.text.trim_start());
    if !text.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\">{text}</text>",
            top_of(row) + 14.5
        );
    }
}

fn style(cell: &vt100::Cell) -> TextStyle {
    let colour = colour(cell.fgcolor()).unwrap_or(FOREGROUND);
    let background = self::colour(cell.bgcolor());
    let (colour, background) = match cell.inverse() {
        true => (background.unwrap_or(BACKGROUND), Some(colour)),
        false => (colour, background),
    };
    let colour = if cell.dim() { between(colour, background.unwrap_or(BACKGROUND)) } else { colour };
    TextStyle {
        colour,
        background,
        is_bold: cell.bold(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
    }
}

fn colour(colour: Color) -> Option<[u8; 3]> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Idx(number @ 0..16) => Some(NAMED_COLOURS[usize::from(number)]),
        Color::Idx(number @ 16..232) => {
            let part = |place: u8| (number - 16) / place % 6;
            let level = |part: u8| if part == 0 { 0 } else { 55 + part * 40 };
            Some([level(part(36)), level(part(6)), level(part(1))])
        }
        Color::Idx(number) => Some([8 + (number - 232) * 10; 3]),
    }
}

/// Nearer to the background, but still to be read.
fn between(colour: [u8; 3], background: [u8; 3]) -> [u8; 3] {
    std::array::from_fn(|part| {
        let mixed = u16::from(colour[part]) * 60 + u16::from(background[part]) * 40;
        u8::try_from(mixed / 100).unwrap_or(u8::MAX)
    })
}

fn css(style: &TextStyle) -> String {
    let mut css = format!("fill:{}", hex(style.colour));
    let parts = [
        (style.is_bold, ";font-weight:700"),
        (style.is_italic, ";font-style:italic"),
        (style.is_underlined, ";text-decoration:underline"),
    ];
    parts.iter().filter(|(is_so, _)| *is_so).for_each(|(_, part)| css.push_str(part));
    css
}

fn class(number: usize) -> String {
    format!("c{number}")
}

fn left_of(column: u16) -> f64 {
    MARGIN + f64::from(column) * COLUMN_WIDTH
}

fn top_of(row: usize) -> f64 {
    MARGIN + row as f64 * ROW_HEIGHT
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[path = "screen_svg_tests.rs"]
mod tests;
