use super::*;

fn share(part: &str, whole: &str) -> f64 {
    ContentWords::of(part).share_in(&ContentWords::of(whole))
}

#[test]
fn a_share_counts_the_words_that_mean_something() {
    assert_eq!(share("The user likes green tea", "green tea is what the users drink"), 0.75);
    assert_eq!(share("the of and", "the of and"), 0.0);
    assert_eq!(share("tea", ""), 0.0);
}

#[test]
fn what_turns_a_meaning_round_is_a_word() {
    assert_eq!(share("never push", "push"), 0.5);
}

#[test]
fn characters_of_scripts_without_spaces_are_words() {
    assert_eq!(share("喜欢茶", "他喜欢绿茶"), 1.0);
    assert_eq!(ContentWords::of("rust言語").len(), 3);
}

#[test]
fn unrelated_sentences_of_an_alphabet_without_spaces_share_no_words() {
    // "Never delete the database without asking first" and "Put the log files into another folder".
    assert_eq!(share("ห้ามลบฐานข้อมูลโดยไม่ถามก่อน", "ย้ายไฟล์บันทึกไปยังโฟลเดอร์อื่น"), 0.0);
    // The same in Burmese: "Don't delete the data" and "The weather is fine today".
    assert_eq!(share("ဒေတာကိုမဖျက်ပါနဲ့", "ဒီနေ့ရာသီဥတုသာယာတယ်"), 0.0);
}
