//! `task_output` with `grep`.

use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_tools::OutputLimit;
use serde_json::json;

use crate::workplace::{SECRET, Workplace, fields, next_offset, text};

/// K10
#[tokio::test]
async fn only_lines_that_match_are_shown() {
    let place = Workplace::new();
    let id = place.finish("seq 1000; printf '\\e[31mERROR\\e[0m one\\n'; seq 5; printf 'error two'").await;

    let found = place.make("task_output", json!({"task_id": id, "grep": "(?i)^error"})).await;
    let none = place.make("task_output", json!({"task_id": id, "grep": "warning"})).await;
    let later = place.make("task_output", json!({"task_id": id, "grep": "^99\\d$", "offset": 3890})).await;
    let bad = place.make("task_output", json!({"task_id": id, "grep": "a("})).await;

    assert_eq!(
        (&fields(&found)["output"], &fields(&found)["message"]),
        (&json!("ERROR one\nerror two\n"), &json!("2 lines match"))
    );
    assert_eq!(
        (&fields(&none)["output"], &fields(&none)["message"]),
        (&json!(""), &json!("no line matches"))
    );
    assert_eq!(fields(&later)["message"], "no line matches", "they are before it");
    assert!(bad.is_error && bad.content.contains("`a(` in `grep` can't be understood"), "{}", bad.content);
}

/// K10
#[tokio::test]
async fn more_lines_than_fit_are_gone_on_with() {
    let mut place = Workplace::new();
    place.output_limit = OutputLimit { lines: 2000, bytes: 3000 };
    let id = place.finish("seq 100000").await;
    let (mut all, mut offset, mut calls) = (String::new(), 0, 0);

    loop {
        let found = place.make("task_output", json!({"task_id": id, "grep": "7$", "offset": offset})).await;
        assert!(found.content.len() <= 3000);
        let fields = fields(&found);
        all.push_str(text(&fields, "output"));
        calls += 1;
        match next_offset(&fields) {
            None => break,
            Some(next) => offset = next,
        }
    }

    let expected: String = (0..10_000).map(|n| format!("{}\n", n * 10 + 7)).collect();
    assert_eq!(all, expected);
    assert!(calls > 10, "{calls}");
}

/// K10: a secret of several lines is one line afterwards, so lines can't be counted there, and none is skipped.
#[tokio::test]
async fn no_line_is_skipped_where_lines_can_not_be_counted() {
    let lines_of_key: String = (0..20).map(|n| format!("key line {n}\\n")).collect();
    let key: String = (0..20).map(|n| format!("key line {n}\n")).collect();
    let mut place = Workplace::with(|settings| {
        settings.redact = Arc::new(move |text: &str| text.replace(&key, "[redacted]\n"));
    });
    place.output_limit = OutputLimit { lines: 2000, bytes: 3000 };
    let id = place.finish(&format!("seq 3000; printf '{lines_of_key}'; seq 3001 6000")).await;
    let (mut all, mut offset) = (BTreeSet::new(), 0);

    loop {
        let found = place.make("task_output", json!({"task_id": id, "grep": "7$", "offset": offset})).await;
        let fields = fields(&found);
        all.extend(text(&fields, "output").lines().map(|line| line.parse::<u64>().unwrap()));
        match next_offset(&fields) {
            None => break,
            Some(next) => {
                assert!(next > offset, "it goes on");
                offset = next;
            }
        }
    }

    assert_eq!(all, (0..600).map(|n| n * 10 + 7).collect());
}

/// K10: ten megabytes without an end of a line.
#[tokio::test]
async fn a_line_without_an_end_is_searched_piece_by_piece() {
    let place = Workplace::new();
    let id = place
        .finish("head -c 5000000 /dev/zero | tr '\\0' x; printf needle; head -c 5000000 /dev/zero | tr '\\0' y; echo; echo last")
        .await;

    let found = place.make("task_output", json!({"task_id": id, "grep": "needle|last"})).await;
    let none = place.make("task_output", json!({"task_id": id, "grep": "z"})).await;
    let part = place.make("task_output", json!({"task_id": id, "offset": 4_999_990, "limit": 26})).await;

    let fields_found = fields(&found);
    let lines: Vec<&str> = text(&fields_found, "output").lines().collect();
    assert_eq!((lines.len(), lines[1]), (2, "last"));
    assert!(lines[0].contains("xneedley") && lines[0].len() <= 510, "{}", lines[0]);
    assert_eq!(fields(&none)["message"], "no line matches");
    assert_eq!(text(&fields(&part), "output"), "xxxxxxxxxxneedleyyyyyyyyyy");
}

/// J8: what was taken out can't be looked for either.
#[tokio::test]
async fn a_secret_can_not_be_found() {
    let place = Workplace::new();
    let id = place.finish(&format!("echo 'the key is {SECRET}.'")).await;

    let found = place.make("task_output", json!({"task_id": id, "grep": "sk-0"})).await;
    let shown = place.make("task_output", json!({"task_id": id, "grep": "key"})).await;

    assert_eq!(fields(&found)["message"], "no line matches");
    assert_eq!(text(&fields(&shown), "output"), "the key is [redacted].\n");
}
