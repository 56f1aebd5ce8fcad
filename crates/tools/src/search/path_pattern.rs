//! Glob patterns for paths, as in `.gitignore`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for paths below a folder. Without a `/` it matches names at any depth.
#[derive(Debug)]
pub(super) struct PathPattern(GlobMatcher);

impl PathPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let inside = pattern.strip_prefix("./").unwrap_or(pattern);
        if inside.starts_with(['/', '~']) || inside.split('/').any(|part| part == "..") {
            return Err(format!(
                "the pattern `{pattern}` is for paths below `path`, so it can't begin with / or ~ or go up; give the \
                 folder as `path`"
            ));
        }
        let anywhere = if inside.contains('/') { inside.to_owned() } else { format!("**/{inside}") };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
        glob.map(|glob| Self(glob.compile_matcher()))
            .map_err(|error| format!("the pattern `{pattern}` can't be understood: {}", error.kind()))
    }

    /// Matches a path relative to the folder.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
#[path = "path_pattern_tests.rs"]
mod tests;
