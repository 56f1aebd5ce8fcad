use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::*;

const KEY: &str = "sk-live-abcabc0123";
const TOKEN: &str = "ghp_[A-Za-z0-9]{36}";
const PRIVATE_KEY: &str = "(?s)-----BEGIN.*?-----END [A-Z ]+-----";

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn redactor(secrets: &[&str], patterns: &[&str]) -> Redactor {
    Redactor::new(&owned(secrets), &owned(patterns)).unwrap()
}

/// What is shown after each piece, and at the end.
fn shown(redactor: &Redactor, deltas: &[&str]) -> Vec<String> {
    let mut stream = redactor.stream();
    let mut shown: Vec<String> = deltas.iter().map(|delta| stream.push(delta)).collect();
    shown.push(stream.finish());
    shown
}

/// J8
#[test]
fn a_secret_is_redacted_wherever_it_stands() {
    let redactor = redactor(&[KEY], &[TOKEN]);
    let token = format!("ghp_{}", "a1".repeat(18));

    let text = redactor.redact(&format!("{KEY} and {KEY}, {token}é{KEY}")).into_owned();

    assert_eq!(text, "[redacted] and [redacted], [redacted]é[redacted]");
}

#[test]
fn a_text_without_a_secret_is_not_copied() {
    let some = redactor(&[KEY], &[TOKEN]);

    assert!(matches!(some.redact("sk-live-abc is no key, nor is ghp_short"), Cow::Borrowed(_)));
    assert!(matches!(some.redact_json(r#"{"text":"sk-live-abc\n"}"#), Cow::Borrowed(_)));
    assert!(matches!(Redactor::default().redact(KEY), Cow::Borrowed(_)));
    assert!(matches!(Redactor::default().redact_json(KEY), Cow::Borrowed(_)));
    assert_eq!(Redactor::default().stream().push(KEY), KEY);
}

/// J8
#[test]
fn overlapping_matches_leave_nothing_of_either() {
    let secret_in_pattern = redactor(&["inside-secret"], &["token=[a-z-]+"]);
    let pattern_in_secret = redactor(&["begin 0123456789 end"], &["[0-9]{10}"]);
    let crossing = redactor(&["abcdef-xyz"], &["xyz[0-9]+"]);
    let itself = redactor(&["abcabcabc"], &[]);

    assert_eq!(secret_in_pattern.redact("token=an-inside-secret-here."), "[redacted].");
    assert_eq!(pattern_in_secret.redact("begin 0123456789 end."), "[redacted].");
    assert_eq!(crossing.redact("abcdef-xyz0123!"), "[redacted]!");
    assert_eq!(itself.redact("abcabcabcabcabc!"), "[redacted]!");
}

#[test]
fn short_empty_and_repeated_secrets_do_no_harm() {
    let short = redactor(&["", "a", "12345"], &[]);
    let twice = redactor(&[KEY, KEY, ""], &[]);
    let mark = redactor(&["redacted", KEY], &[]);

    assert!(short.rules().is_none());
    assert_eq!(short.redact("a 12345"), "a 12345");
    assert_eq!(twice.redact(KEY), "[redacted]");
    assert_eq!(mark.redact(KEY), "[redacted]");
}

#[test]
fn a_hundred_secrets_are_all_found() {
    let secrets: Vec<String> =
        (0..100).map(|number| format!("secret-{number:03}-{}", number * 7919)).collect();
    let redactor = Redactor::new(&secrets, &[]).unwrap();
    let text = secrets.join(" ");

    let expected = vec![MARK; 100].join(" ");
    assert_eq!(redactor.redact(&text), expected);
    assert_eq!(shown(&redactor, &text.split_inclusive('-').collect::<Vec<_>>()).concat(), expected);
}

#[test]
fn a_pattern_that_can_not_be_used_is_refused_with_the_reason() {
    let refused = |pattern: &str| Redactor::new(&[], &owned(&["fine", pattern])).unwrap_err();

    for (pattern, reason) in [
        ("a*", "empty string"),
        (r"\b", "empty string"),
        ("x|", "empty string"),
        ("(open", "unclosed group"),
        (r"(\w{1000}){1000}", "too large"),
        (r"(?-u:\xFF)", "UTF-8"),
    ] {
        let bad = refused(pattern);
        assert_eq!(bad.pattern, pattern);
        assert!(bad.reason.contains(reason), "{bad}");
    }
}

/// J8: logging a redactor logs no secret.
#[test]
fn a_redactor_does_not_print_what_it_knows() {
    let redactor = redactor(&[KEY], &[]);
    let mut stream = redactor.stream();
    stream.push("sk-live");

    assert_eq!(format!("{redactor:?} {stream:?}"), "Redactor { .. } StreamRedactor { .. }");
}

/// J8
#[test]
fn a_secret_in_a_body_is_found_however_it_is_escaped() {
    let secret = "pa\"ss\nwörd\\";
    let redactor = redactor(&[secret], &[]);
    let arguments = json!({ "password": secret }).to_string();
    let body = json!({"text": format!("is {secret}!"), "arguments": arguments, "index": 1}).to_string();
    let spelled = r#"{"text":"\u0070a\u0022ss\u000aw\u00F6rd\u005c\/"}"#;

    let redacted: Value = serde_json::from_str(&redactor.redact_json(&body)).unwrap();
    let spelled = redactor.redact_json(spelled).into_owned();

    assert_eq!(
        redacted,
        json!({"text": "is [redacted]!", "arguments": "{\"password\":\"[redacted]\"}", "index": 1})
    );
    assert_eq!(spelled, r#"{"text":"[redacted]/"}"#);
}

#[test]
fn the_rest_of_a_body_keeps_its_bytes() {
    let redactor = redactor(&[KEY], &["[0-9]{9,}"]);
    let body = format!(
        r#" {{"z" : "\u0041\/", "number":1234567890,"a":[1.0e5,"{KEY}",null, "{KEY}\n"],"1234567890":"x"}} "#
    );

    let redacted = redactor.redact_json(&body).into_owned();

    let expected = r#" {"z" : "\u0041\/", "number":1234567890,"a":[1.0e5,"[redacted]",null, "[redacted]\n"],"1234567890":"x"} "#;
    assert_eq!(redacted, expected);
}

/// A session whose ids are redacted can't be opened.
#[test]
fn patterns_leave_ids_and_hashes_alone_and_secrets_do_not() {
    let (id, hash) = ("01JCZ5M0000000000000000000", "0123456789abcdef");
    let redactor = redactor(&[KEY], &["[0-9A-Z]{26}", "[0-9a-f]{16}"]);
    let body = json!({
        "attempt": id, "calls": [id, id], "write": {"before": hash, "path": hash}, "text": id,
        "questions": [{"id": id, "text": id}, id], "wire_id": KEY,
    });

    let redacted: Value = serde_json::from_str(&redactor.redact_json(&body.to_string())).unwrap();

    let expected = json!({
        "attempt": id, "calls": [id, id], "write": {"before": hash, "path": MARK}, "text": MARK,
        "questions": [{"id": id, "text": MARK}, MARK], "wire_id": MARK,
    });
    assert_eq!(redacted, expected);
}

/// A string begins where its quote is, not where the body begins.
#[test]
fn a_pattern_that_looks_around_sees_the_string_not_the_body() {
    let redactor = redactor(&[], &["^key [a-z]+$"]);

    assert_eq!(
        redactor.redact_json(r#"{"a":"key abc","b":"no key abc"}"#),
        r#"{"a":"[redacted]","b":"no key abc"}"#
    );
    assert_eq!(redactor.redact_json(r#"{"a":"key abc\t"}"#), r#"{"a":"key abc\t"}"#);
}

#[test]
fn a_body_that_can_not_be_read_is_redacted_all_the_same() {
    let redactor = redactor(&[KEY], &[]);

    assert_eq!(redactor.redact_json(&format!("no \\ json {KEY}\"")), "no \\ json [redacted]\"");
    assert_eq!(
        redactor.redact_json(r#"{"half":"\ud800","text":"x"}"#),
        r#"{"half":"[redacted]","text":"x"}"#
    );
}

#[test]
fn text_that_can_not_begin_a_secret_is_not_held_back() {
    let redactor = redactor(&[KEY], &[TOKEN, PRIVATE_KEY, r"(?m)^password: .+$"]);

    assert_eq!(shown(&redactor, &["Hello world", " é", "!"]), ["Hello world", " é", "!", ""]);
    assert_eq!(shown(&redactor, &["ask", " him"]), ["a", "sk him", ""]);
}

/// J8
#[test]
fn a_secret_split_over_deltas_is_never_shown() {
    let redactor = redactor(&[KEY], &[TOKEN]);
    let token = format!("ghp_{}", "a1".repeat(18));

    assert_eq!(
        shown(&redactor, &["it is sk-l", "ive-abcabc01", "23, so"]),
        ["it is ", "", "[redacted], so", ""]
    );
    assert_eq!(shown(&redactor, &["sk-live-abc", "abd"]), ["", "sk-live-abcabd", ""]);
    assert_eq!(shown(&redactor, &["x", &token[..20], &token[20..]]), ["x", "", "", "[redacted]"]);
}

/// What comes after a private key is not held back for the end of another one.
#[test]
fn text_goes_on_after_a_match_that_can_not_become_longer() {
    let redactor = redactor(&[], &[PRIVATE_KEY]);
    let deltas = ["a -----BEGIN KEY", "-----\nabc\n-----END", " KEY-----", " and on", " it goes"];

    assert_eq!(shown(&redactor, &deltas), ["a ", "", "", "[redacted] and on", " it goes", ""]);
}

/// `\b` wants to see the next character, and the one before that is already shown.
#[test]
fn a_pattern_that_looks_around_is_held_back_for_what_it_looks_at() {
    let redactor = redactor(&[], &[r"\bpin [0-9]{4}\b"]);

    assert_eq!(shown(&redactor, &["pin 1234", "5 é"]).concat(), "pin 12345 é");
    assert_eq!(shown(&redactor, &["pin 1234", " 5"]).concat(), "[redacted] 5");
    assert_eq!(shown(&redactor, &["a", "pin 1234", "."]).concat(), "apin 1234.");
    assert_eq!(shown(&redactor, &["é", "pin 1234", "."]).concat(), "épin 1234.");
    assert_eq!(shown(&redactor, &["日本", "語 ", "é "]), ["日本", "語 ", "é ", ""]);
}

#[test]
fn what_waits_for_an_end_that_never_comes_is_shown_in_the_end() {
    let redactor = redactor(&[KEY], &[PRIVATE_KEY]);
    let text = format!("-----BEGIN {KEY} {}", "x".repeat(70 * 1024));
    let mut stream = redactor.stream();

    let first = stream.push(&text);
    let after = [stream.push("Hello"), stream.push(" world")];

    assert!(first.starts_with("-----BEGIN [redacted] xxx") && first.len() > 69 * 1024);
    assert_eq!(after[1], " world");
    assert_eq!([first, after.concat(), stream.finish()].concat(), redactor.redact(&(text + "Hello world")));
}

#[test]
fn a_stream_that_finished_begins_anew() {
    let redactor = redactor(&[KEY], &["^start [0-9]+"]);
    let mut stream = redactor.stream();

    let first = [stream.push("start 1 sk-"), stream.finish()].concat();
    let second =
        [stream.push("live-abcabc0123 "), stream.finish(), stream.push("start 2"), stream.finish()].concat();

    assert_eq!([first, second], ["[redacted] sk-", "live-abcabc0123 [redacted]"]);
}

/// In proportion to its length: with the square of it, it would be a hundred times as long as in pieces.
#[test]
fn a_megabyte_in_small_deltas_takes_no_time() {
    let redactor = redactor(&[KEY], &[TOKEN, PRIVATE_KEY, r"\bpassword=\w+"]);
    let time = |text: &str| {
        let started = Instant::now();
        let mut stream = redactor.stream();

        let mut length = 0;
        for delta in text.as_bytes().chunks(10) {
            length += stream.push(str::from_utf8(delta).unwrap()).len();
        }
        length += stream.finish().len();

        assert_eq!(length, text.len());
        started.elapsed()
    };
    let plain = |count: usize| "Hello worl".repeat(count);
    let held = |count: usize| format!("-----BEGIN{}", "sk-live-ab".repeat(count));
    let texts: [&dyn Fn(usize) -> String; 2] = [&plain, &held];

    for text in texts {
        let (piece, whole) = (text(1_000), text(100_000));
        // Both take long enough to be held up by whatever else the machine does.
        let pieces: Duration = (0..100).map(|_| time(&piece)).sum();
        let is_fast = (0..3).any(|_| time(&whole) < 10 * pieces);

        assert!(is_fast, "it takes over ten times as long as {pieces:?}, for as much in pieces");
    }
}

/// More states than the cache of a lazy DFA takes: it is cleared on the way, and loses nothing.
#[test]
fn an_automaton_that_forgets_its_states_loses_nothing() {
    let redactor = redactor(&[KEY], &["a[ab]{14}c"]);
    let (mut text, mut random) = (String::new(), 1_u32);
    for _ in 0..60_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push(match random >> 20 {
            0..20 => 'c',
            20..40 => ' ',
            number if number % 2 == 0 => 'a',
            _ => 'b',
        });
    }
    let deltas: Vec<&str> = text.as_bytes().chunks(7).map(|delta| str::from_utf8(delta).unwrap()).collect();

    let shown = shown(&redactor, &deltas);

    assert!(shown[..shown.len() - 1].concat().len() > 50_000 && shown.concat().contains(MARK));
    assert_eq!(shown.concat(), redactor.redact(&text));
}

const SECRETS: [&str; 5] = ["abcabcabd", "bcabca", "cabdé\"\n日x", "a\\nb\\tc", "-----BEGIN"];
const PATTERNS: [&[&str]; 7] = [
    &[],
    &[TOKEN],
    &[PRIVATE_KEY],
    &["ab+?c", "(?i)C[abé]*", "b(c.*d)?a"],
    &[r"\bab\w+\b", "(?m)^c.*$", r"é$"],
    &["^a.b", "[^a]{3,5}", PRIVATE_KEY, r"\Bc(?-u:\b)"],
    &["a[abc]{2,}d|bc", "日x|x日+"],
];

fn piece() -> impl Strategy<Value = String> {
    let within = (select(&SECRETS[..]), any::<Index>(), any::<Index>()).prop_map(|(secret, from, to)| {
        let (from, to) = (from.index(secret.len()), to.index(secret.len() + 1));
        let (from, to) = (secret.floor_char_boundary(from.min(to)), secret.floor_char_boundary(from.max(to)));
        secret[from..to].to_owned()
    });
    let token = format!("ghp_{}", "Z9".repeat(18));
    let others = [
        "-----BEGIN X",
        "-----END K",
        "-----",
        &token,
        "ghp_a",
        "\n",
        " ",
        "é",
        "日",
        "\"",
        "\\",
        "A",
        "[redacted]",
    ];
    prop_oneof![4 => within, 2 => select(owned(&SECRETS)), 3 => select(owned(&others))]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..25).prop_map(|pieces| pieces.concat())
}

/// The text cut at these places.
fn cut<'a>(text: &'a str, places: &[Index]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        places.iter().map(|place| text.floor_char_boundary(place.index(text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// J8
    #[test]
    fn no_secret_is_left_in_any_text(text in text(), patterns in select(&PATTERNS[..])) {
        let redacted = redactor(&SECRETS, patterns).redact(&text).into_owned();

        prop_assert!(SECRETS.iter().all(|secret| !redacted.contains(secret)), "{redacted:?}");
    }

    /// J8
    #[test]
    fn no_secret_is_left_in_any_body(text in text(), other in text(), patterns in select(&PATTERNS[..])) {
        let body = json!({"text": text, "id": text, "list": [other, {"a": null}], "n": 1});
        let redactor = redactor(&SECRETS, patterns);

        let redacted: Value = serde_json::from_str(&redactor.redact_json(&body.to_string())).unwrap();

        let id = Redactor::new(&owned(&SECRETS), &[]).unwrap().redact(&text).into_owned();
        let expected = json!({
            "text": redactor.redact(&text), "id": id, "list": [redactor.redact(&other), {"a": null}], "n": 1
        });
        prop_assert_eq!(redacted, expected);
    }

    /// J8
    #[test]
    fn the_cuts_make_no_difference(
        text in text(), patterns in select(&PATTERNS[..]), cuts in proptest::collection::vec(any::<Index>(), 0..40)
    ) {
        let secrets: &[&str] = if cuts.len() % 2 == 0 { &SECRETS } else { &[] };
        let redactor = redactor(secrets, patterns);

        prop_assert_eq!(shown(&redactor, &cut(&text, &cuts)).concat(), redactor.redact(&text));
    }

    /// J8: an expression that waits forever makes a stream give up again and again; secrets word for word are not lost by it.
    #[test]
    fn no_secret_is_lost_when_too_much_is_held(
        text in text(), cuts in proptest::collection::vec(any::<Index>(), 0..40)
    ) {
        let redactor = redactor(&SECRETS, &["(?s)[a-z-].*never"]);
        let mut stream = redactor.stream().with_max_held_bytes(16);

        let mut shown: String = cut(&text, &cuts).into_iter().map(|delta| stream.push(delta)).collect();
        shown += &stream.finish();

        prop_assert_eq!(shown, redactor.redact(&text));
    }

    /// J8: the limit of what is held may show a part of what an expression matches, but never a secret.
    #[test]
    fn no_secret_is_shown_when_too_much_is_held(
        text in text(), patterns in select(&PATTERNS[..]), cuts in proptest::collection::vec(any::<Index>(), 0..40)
    ) {
        let mut stream = redactor(&SECRETS, patterns).stream().with_max_held_bytes(16);

        let mut shown: String = cut(&text, &cuts).into_iter().map(|delta| stream.push(delta)).collect();
        shown += &stream.finish();

        prop_assert!(SECRETS.iter().all(|secret| !shown.contains(secret)), "{shown:?}");
    }
}

/// J8: a model may spell the arguments of a call as it likes.
#[test]
fn a_secret_that_is_spelt_with_escapes_inside_of_arguments_is_found() {
    let redactor = Redactor::new(&["sk-secret-1234".to_owned()], &[]).unwrap();
    let arguments = r#"{"command":"echo sk-sec\u0072et-1234 > f","more":"a\nb"}"#;
    let body = serde_json::json!({"arguments": arguments, "name": "exec"}).to_string();

    let clean = redactor.redact_json(&body);

    let value: Value = serde_json::from_str(&clean).unwrap();
    let inner: Value = serde_json::from_str(value["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(inner, serde_json::json!({"command": "echo [redacted] > f", "more": "a\nb"}));
}

#[test]
fn a_secret_that_is_added_later_is_known_to_every_clone() {
    let redactor = Redactor::new(&["first-secret".to_owned()], &["ghp_[a-z]{4}".to_owned()]).unwrap();
    let clone = redactor.clone();

    redactor.add_secrets(["second-secret".to_owned(), "first-secret".to_owned()]);

    assert_eq!(clone.redact("first-secret second-secret ghp_abcd"), "[redacted] [redacted] [redacted]");
}
