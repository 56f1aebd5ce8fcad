//! Here documents.

use super::UnseenReason;
use super::parser::ShellParser;

/// A here document whose text begins after the current line.
#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends it.
    pub(super) end: String,
    pub(super) strips_tabs: bool,
    /// The end marker is quoted, so the shell expands nothing in the text and joins no lines.
    pub(super) is_quoted: bool,
    /// A shell reads the text as its script.
    pub(super) is_script: bool,
}

impl ShellParser<'_, '_> {
    /// Reads the here documents of the line that has just ended.
    pub(super) fn read_here_documents(&mut self) {
        for document in std::mem::take(&mut self.here_documents) {
            let body = self.here_document(&document);
            if !document.is_quoted {
                self.expansions_in(&body);
            }
            if !document.is_script {
                continue;
            }
            if document.is_quoted || !body.contains(['$', '`', '\\']) {
                self.inner_script(&body);
            } else {
                self.script.unseen.push(UnseenReason::Text(body));
            }
        }
    }

    /// The text of a document as the command gets it, before anything in it is expanded.
    fn here_document(&mut self, document: &HereDocument) -> String {
        let mut body = String::new();
        while self.at < self.text.len() {
            let from = body.len();
            self.here_document_line(document, &mut body);
            let line = &body[from..];
            let line = line.strip_suffix('\n').unwrap_or(line);
            let Some(rest) = line.strip_prefix(&document.end) else { continue };
            if rest.is_empty() {
                body.truncate(from);
                break;
            }
            // Bash ends the document here if the substitution ends on the same line.
            if self.in_substitution && rest.contains([')', '}']) {
                self.script.unseen.push(UnseenReason::Syntax);
            }
        }
        body
    }

    /// Adds one line with its line end. A backslash at the end of a line joins the next one to it, before the line is compared with
    /// the end marker.
    fn here_document_line(&mut self, document: &HereDocument, body: &mut String) {
        if document.strips_tabs {
            self.at = self.text.len() - self.rest().trim_start_matches('\t').len();
        }
        loop {
            let length = self.rest().find('\n').map_or(self.rest().len(), |end| end + 1);
            let line = &self.rest()[..length];
            self.at += length;
            match line.strip_suffix("\\\n").filter(|_| !document.is_quoted) {
                Some(start) if !escapes_what_follows(start) => body.push_str(start),
                _ => return body.push_str(line),
            }
        }
    }
}

/// Whether the text ends with a backslash that escapes the next character.
fn escapes_what_follows(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}
