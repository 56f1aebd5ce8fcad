//! The web console: its files, inside the program, and the policy under which a browser shows them.
//!
//! The page is plain modules without a build step; `files/` is what the browser gets. It talks to the HTTP API like any other
//! client. Its only state is the last record that it has shown, so a reload, a sleep and a restarted server are the same
//! to it. Finished blocks come rendered from the server; text that is still being received is shown as text.
//!
//! This crate knows neither the server nor a session. `server` serves the files.

use std::sync::OnceLock;

/// A file of the console.
#[derive(Debug)]
pub struct ConsoleFile {
    /// The path in the address, such as `/console/app.js`.
    pub path: &'static str,
    pub media_type: &'static str,
    source: &'static str,
    served: OnceLock<String>,
    tag: OnceLock<String>,
}

impl ConsoleFile {
    const fn new(path: &'static str, media_type: &'static str, source: &'static str) -> Self {
        Self { path, media_type, source, served: OnceLock::new(), tag: OnceLock::new() }
    }

    /// What the browser gets: the file, with an empty line for each line that is only a comment.
    pub fn bytes(&self) -> &[u8] {
        let served = || match self.media_type {
            SCRIPT | STYLE => blank_comments(self.source),
            _ => self.source.to_owned(),
        };
        self.served.get_or_init(served).as_bytes()
    }

    /// The entity tag: the same as long as the file is.
    pub fn tag(&self) -> &str {
        self.tag.get_or_init(|| format!("\"{}\"", &blake3::hash(self.bytes()).to_hex()[..16]))
    }
}

/// The text without its comments, which are a fifth of what a phone would load. Empty lines stay in their places, so that the line of an
/// error is the one in the file. A comment that shares a line with code stays.
fn blank_comments(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut is_in_comment = false;
    for line in source.lines() {
        let code = line.trim();
        let begins = code.starts_with("/*");
        let end = code.find("*/").map(|place| place + 2);
        let is_comment =
            is_in_comment || code.starts_with("//") || begins && end.is_none_or(|end| end == code.len());
        is_in_comment = (is_in_comment || begins) && end.is_none();
        if !is_comment {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

/// The version of the page: another one whenever a file changes.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let tags: String = FILES.iter().map(ConsoleFile::tag).collect();
        blake3::hash(tags.as_bytes()).to_hex()[..16].to_owned()
    })
}

/// What the page may do: run and fetch nothing but files of this server, and never turn text into markup or script. The one
/// exception, fragments that the server rendered, goes through the policy `console` of `dom.js`.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
const MANIFEST: &str = "application/manifest+json";

/// Makes the table of files from their names.
macro_rules! files {
    ($($path:literal: $kind:expr => $file:literal,)*) => {
        [$(ConsoleFile::new($path, $kind, include_str!(concat!("../files/", $file)))),*]
    };
}

/// Every file, the page itself first.
pub static FILES: [ConsoleFile; 31] = files! {
    "/": HTML => "index.html",
    "/console/agents.js": SCRIPT => "agents.js",
    "/console/api.js": SCRIPT => "api.js",
    "/console/app.js": SCRIPT => "app.js",
    "/console/block-list.js": SCRIPT => "block-list.js",
    "/console/charts.js": SCRIPT => "charts.js",
    "/console/composer.js": SCRIPT => "composer.js",
    "/console/conversation.js": SCRIPT => "conversation.js",
    "/console/dom.js": SCRIPT => "dom.js",
    "/console/figures.js": SCRIPT => "figures.js",
    "/console/format.js": SCRIPT => "format.js",
    "/console/icon.svg": SVG => "icon.svg",
    "/console/installation.js": SCRIPT => "installation.js",
    "/console/live-list.js": SCRIPT => "live-list.js",
    "/console/live-text.js": SCRIPT => "live-text.js",
    "/console/manifest.json": MANIFEST => "manifest.json",
    "/console/memory.js": SCRIPT => "memory.js",
    "/console/notify.js": SCRIPT => "notify.js",
    "/console/overview.js": SCRIPT => "overview.js",
    "/console/questions.js": SCRIPT => "questions.js",
    "/console/quiet-turns.js": SCRIPT => "quiet-turns.js",
    "/console/schedule-form.js": SCRIPT => "schedule-form.js",
    "/console/schedules.js": SCRIPT => "schedules.js",
    "/console/session-head.js": SCRIPT => "session-head.js",
    "/console/session-state.js": SCRIPT => "session-state.js",
    "/console/single-flight.js": SCRIPT => "single-flight.js",
    "/console/statement.js": SCRIPT => "statement.js",
    "/console/stream.js": SCRIPT => "stream.js",
    "/console/style.css": STYLE => "style.css",
    "/console/tasks.js": SCRIPT => "tasks.js",
    "/console/trash.js": SCRIPT => "trash.js",
};

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
