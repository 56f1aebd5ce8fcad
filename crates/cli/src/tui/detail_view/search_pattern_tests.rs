use super::*;

fn found(pattern: &str, line: &str) -> Vec<String> {
    let ranges = SearchPattern::new(pattern).unwrap().ranges_in(line);
    ranges.into_iter().map(|range| line[range].to_owned()).collect()
}

#[test]
fn capital_letters_count_only_if_the_pattern_has_one() {
    assert_eq!(found("error", "error, Error and ERROR"), ["error", "Error", "ERROR"]);
    assert_eq!(found("Error", "error, Error and ERROR"), ["Error"]);
    assert_eq!(found("größe", "GRÖßE Größe"), ["GRÖßE", "Größe"]);
    assert_eq!(found("aa", "aaaaa"), ["aa", "aa"]);
    assert_eq!(found("語", "日本語"), ["語"]);
    assert!(found("x", "").is_empty());
    assert_eq!(SearchPattern::new(""), None);
}
