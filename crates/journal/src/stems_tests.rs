use proptest::prelude::*;

use super::*;

fn are_the_same(words: &str) {
    let stems = stems(words);
    assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
}

fn differ(one: &str, other: &str) {
    assert_ne!(stems(one), stems(other));
}

#[test]
fn the_forms_of_a_word_are_the_same() {
    are_the_same("port ports");
    are_the_same("deploy deploys deployed deploying deployment deployments");
    are_the_same("migrate migrated migrating migration migrations");
    are_the_same("plan plans planned planning");
    are_the_same("policy policies");
    are_the_same("database databases");
    are_the_same("box boxes");
    are_the_same("store stores stored storing");
    are_the_same("prefer prefers preferred preference preferences");
    are_the_same("indent indented indenting indentation");
    are_the_same("server servers");
    are_the_same("configure configured configuration");
    are_the_same("Crème creme CREME cre\u{301}me");
    are_the_same("настройка настройки");
}

#[test]
fn other_words_stay_apart() {
    differ("port", "portal");
    differ("format", "form");
    differ("status", "state");
    differ("need", "ned");
    differ("bus", "bu");
    differ("v2", "v3");
}

#[test]
fn scripts_without_spaces_are_characters_one_by_one_and_two_by_two() {
    assert_eq!(stems("用db库"), ["用", "db", "库"]);
    assert_eq!(stems("数据库"), ["数", "据", "库", "数据", "据库"]);
}

proptest! {
    #[test]
    fn every_text_has_words_or_none(text in any::<String>()) {
        prop_assert!(stems(&text).iter().all(|word| !word.is_empty() && !word.contains(char::is_whitespace)));
    }
}
