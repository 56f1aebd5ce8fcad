//! Patterns for paths, as people know them from `.gitignore`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for paths below a folder. Without a `/` it is for the name alone, at any depth.
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

    /// Whether it fits a path, given from the folder on.
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::new(pattern).unwrap().matches(Path::new(path))
    }

    #[test]
    fn a_pattern_without_a_slash_is_for_names_at_any_depth() {
        assert!(matches("*.rs", "main.rs"));
        assert!(matches("*.rs", "src/deep/main.rs"));
        assert!(!matches("*.rs", "main.rs.txt"));
    }

    #[test]
    fn a_star_stays_within_a_folder_and_two_go_through_all() {
        assert!(matches("src/*.rs", "src/main.rs"));
        assert!(!matches("src/*.rs", "src/deep/main.rs"));
        assert!(matches("./src/**/*.{rs,toml}", "src/a/b/Cargo.toml"));
    }

    #[test]
    fn a_pattern_that_leads_elsewhere_or_is_none_is_refused() {
        for pattern in ["/etc/*", "~/x", "../*", "a/../b", "a["] {
            assert!(PathPattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
