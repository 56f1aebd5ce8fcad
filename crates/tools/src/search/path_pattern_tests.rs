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
