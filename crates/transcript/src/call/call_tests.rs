use longhaul_protocol::CallId;
use proptest::prelude::*;

use super::*;
use crate::block::CallResult;
use crate::reasoning::{reasoning_lines, reasoning_summary};

fn shown(rows: &[StyledLine]) -> String {
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn line(name: &str, arguments: &str) -> String {
    running_call_line(&started(name, arguments), 60).to_string()
}

fn started(name: &str, arguments: &str) -> Call {
    let (name, arguments) = (name.to_owned(), arguments.to_owned());
    Call { call: CallId::from_bits(1), name, arguments, effect: None, result: None }
}

fn call(name: &str, arguments: &str, content: &str) -> Call {
    let result = CallResult { content: content.to_owned(), ..CallResult::default() };
    Call { result: Some(result), ..started(name, arguments) }
}

fn failed_call(name: &str, arguments: &str, content: &str) -> Call {
    let result = CallResult { content: content.to_owned(), is_error: true, ..CallResult::default() };
    Call { result: Some(result), ..started(name, arguments) }
}

fn finished(call: &Call, width: u16) -> Vec<StyledLine> {
    finished_call_lines(call, Duration::ZERO, width)
}

fn opened(call: &Call, width: u16) -> Vec<StyledLine> {
    call_detail_lines(call, Duration::ZERO, width)
}

const EDIT: &str =
    r#"{"path":"src/main.rs","edits":[{"old":"fn a() {\n    1\n}","new":"fn a() {\n    2\n    3\n}"}]}"#;

#[test]
fn a_call_is_told_in_one_line() {
    assert_eq!(line("exec", r#"{"command":"cargo test","timeout":60}"#), "exec  cargo test");
    assert_eq!(line("exec", r#"{"command":"a\nb","work_dir":"x"}"#), "exec  a …  (in x)");
    assert_eq!(
        line("exec", r#"{"command":"cargo test","description":"run the tests"}"#),
        "exec  run the tests · cargo test"
    );
    assert_eq!(line("edit_file", EDIT), "edit_file  src/main.rs  +2 −1");
    assert_eq!(line("write_file", r#"{"path":"a","content":"1\n2\n"}"#), "write_file  a  +2");
    assert_eq!(line("read_file", r#"{"path":"a.rs","offset":20,"limit":20}"#), "read_file  a.rs:20-39");
    assert_eq!(line("list_files", "{}"), "list_files  .");
    assert_eq!(
        line("search_text", r#"{"pattern":"fn .*","path":"src","glob":"*.rs"}"#),
        "search_text  fn .*  in src *.rs"
    );
    assert_eq!(
        line("todo", r#"{"items":[{"text":"a","status":"done"},{"text":"b"}]}"#),
        "todo  2 items, 1 done"
    );
    assert_eq!(line("task_output", "{}"), "task_output");
    assert_eq!(line("recall", r#"{"query":"the port"}"#), "recall  the port");
    assert_eq!(line("recall_read", r##"{"ref":"#3-9"}"##), "recall_read  #3-9");
    let patch = r#"{"patch":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch"}"#;
    assert_eq!(line("patch", patch), "patch  a, b");
    assert_eq!(line("delete_file", r#"{"path":"a"}"#), "delete_file  a");
    assert_eq!(line("move_file", r#"{"from":"a","to":"b"}"#), "move_file  a → b");
    // Calls of earlier versions.
    assert_eq!(line("task_list", "{}"), "task_list");
    assert_eq!(line("history_read", r#"{"from":3,"to":9}"#), "history_read  3 to 9");
}

#[test]
fn arguments_that_nobody_knows_are_shown_shortened() {
    assert_eq!(
        line("deploy", r#"{"to":"x","n":1,"deep":{"a":[1]}}"#),
        r#"deploy  deep: {"a":[1]}, n: 1, to: x"#
    );
    assert_eq!(line("exec", r#"{"command": "car"#), r#"exec  {"command": "car"#);
    assert_eq!(line("exec", r#"{"command":3}"#), "exec  command: 3");
    assert_eq!(line("x\u{1b}", "[\n\u{1b}"), "x\u{fffd}  [ \u{fffd}");
    assert_eq!(line("exec", &"x".repeat(500)).chars().count(), 60);
}

#[test]
fn very_large_arguments_are_not_read_while_a_call_runs() {
    let arguments = format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(MAX_LIVE_ARGUMENT_BYTES));

    assert_eq!(
        running_call_line(&started("write_file", &arguments), 40).to_string(),
        r#"write_file  {"path":"a","content":"xxxx…"#
    );
}

#[test]
fn a_command_that_ended_says_how() {
    let fine =
        call("exec", r#"{"command":"ls"}"#, "status: completed\nexit_code: 0\nduration_ms: 4\n\na\nb\n");
    let failed =
        call("exec", r#"{"command":"cargo test"}"#, "status: failed\nexit_code: 101\n\nx\nerror: no\n\n");
    let took = Duration::from_millis(3_200);
    let report = "status: auto_backgrounded\ntask_id: task_01jq4z5v8k2m9x7w3r6t1y0b4n\n\n";
    let goes_on = call("exec", r#"{"command":"sleep 9"}"#, report);
    let ended = call("exec", r#"{"command":"y"}"#, "status: timed_out\nmessage: it was ended\n\n");
    let of_old = r#"{"status":"completed","output":"a\nb\n","exit_code":0}"#;
    let of_an_earlier_version = call("exec", r#"{"command":"ls"}"#, of_old);

    assert_eq!(shown(&finished(&fine, 60)), "✓ exec  ls  2 lines\n  a\n  b");
    assert_eq!(shown(&finished(&of_an_earlier_version, 60)), "✓ exec  ls  2 lines\n  a\n  b");
    assert_eq!(
        shown(&finished_call_lines(&failed, took, 60)),
        "✗ exec  cargo test  4 s  exit code 101\n  x\n  error: no"
    );
    let in_one_row = |width| call_summary_line(&failed, took, width).to_string();
    assert_eq!(in_one_row(60), "✗ exec  cargo test  4 s  exit code 101  error: no");
    assert_eq!(in_one_row(34), "✗ exec  cargo test  4 s  exit cod…");
    assert_eq!(shown(&finished(&goes_on, 60)), "✓ exec  sleep 9  goes on in the background as task 1y0b4n");
    assert_eq!(shown(&finished(&ended, 60)), "✗ exec  y  timed out  it was ended");
}

#[test]
fn the_end_of_a_long_output_stays_below_its_command() {
    let output: String = (1..=99).map(|line| format!("\tline {line}\n")).collect();
    let whole =
        call("exec", r#"{"command":"seq"}"#, &format!("status: completed\nexit_code: 0\n\n{output}\n\n"));
    let marker =
        "[… 99,901 lines (5 bytes) are missing here; read_file with the path \"output:x\" reads the whole …]";
    let cut = call(
        "exec",
        r#"{"command":"seq"}"#,
        &format!("status: completed\n\n1\n{marker}\n\u{1b}[31m日本語\n"),
    );
    let mut counted = cut.clone();
    counted.result.as_mut().unwrap().lines = Some(100_000);

    insta::assert_snapshot!(shown(&finished(&whole, 40)), @r"
    ✓ exec  seq  101 lines
      … 95 more lines, Ctrl-O
          line 96
          line 97
          line 98
          line 99
    ");
    insta::assert_snapshot!(shown(&finished(&cut, 20)), @r"
    ✓ exec  seq  99,903…
      … 99,900 more lin…
      1
      … cut here, Ctrl-…
      �[31m日本語
    ");
    assert!(shown(&finished(&counted, 60)).starts_with("✓ exec  seq  100,000 lines\n"));
    assert!(has_more_output(&cut) && has_more_output(&counted) && !has_more_output(&whole));
}

#[test]
fn a_change_with_its_diff_has_line_numbers() {
    let mut edit = call("edit_file", EDIT, "made 1 edit");
    let diff =
        "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -7,3 +7,4 @@\n fn a() {\n-    1\n+    2\n+    3\n }\n";
    edit.result.as_mut().unwrap().diff = Some(diff.to_owned());

    insta::assert_snapshot!(shown(&finished(&edit, 60)), @r"
    ✓ edit_file  src/main.rs  +2 −1
       7   fn a() {
       8 -     1
       8 +     2
       9 +     3
      10   }
    ");
    assert_eq!(shown(&opened(&edit, 60)), shown(&finished(&edit, 60)));
}

#[test]
fn other_calls_say_how_much_they_found_or_what_was_wrong() {
    let read = call("read_file", r#"{"path":"a"}"#, "1\n2\n[lines 1 to 2 of 9]");
    let matches = "a:1:x\na-2-x: 1:\n--\nb-c:12:y\n[note]";
    let search = call("search_text", r#"{"pattern":"x"}"#, matches);
    let list = call("list_files", "{}", "a (1 bytes)\nb/");
    let error = failed_call("read_file", r#"{"path":"a"}"#, "\na is not there\nmore");

    assert_eq!(shown(&finished(&read, 60)), "✓ read_file  a  2 lines");
    assert_eq!(shown(&finished(&search, 60)), "✓ search_text  x  2 matches");
    assert_eq!(shown(&finished(&list, 60)), "✓ list_files  .  2 entries");
    assert_eq!(shown(&finished(&error, 60)), "✗ read_file  a  a is not there");
}

#[test]
fn a_change_of_a_file_is_shown_below_its_line() {
    insta::assert_snapshot!(shown(&finished(&call("edit_file", EDIT, "made 1 edit"), 60)), @r"
    ✓ edit_file  src/main.rs  +2 −1
      fn a() {
    -     1
    +     2
    +     3
      }
    ");
    let failed = failed_call("edit_file", EDIT, "`old` was not found");
    assert_eq!(shown(&finished(&failed, 60)), "✗ edit_file  src/main.rs  `old` was not found");
}

#[test]
fn a_long_change_is_cut_and_says_by_how_much() {
    let content: String = (1..=100).map(|line| format!("{line}\\n")).collect();
    let arguments = format!(r#"{{"path":"a","content":"{content}"}}"#);

    let rows = finished(&call("write_file", &arguments, "wrote 9 bytes to a (new)"), 60);

    assert_eq!(rows.len(), 1 + MAX_DIFF_ROWS);
    assert_eq!(rows[0].to_string(), "✓ write_file  a  +100  new");
    assert_eq!(rows[MAX_DIFF_ROWS].to_string(), "… 89 more lines");
}

#[test]
fn many_edits_are_counted_in_one_line_too() {
    let edit = r#"{"old":"a\nb\nc","new":"d\ne\nf"}"#;
    let arguments = format!(r#"{{"path":"a","edits":[{}]}}"#, [edit; 5].join(","));

    let rows = finished(&call("edit_file", &arguments, "made 5 edits in a"), 60);

    assert_eq!(rows[0].to_string(), "✓ edit_file  a  +15 −15");
    assert_eq!(rows.len(), 1 + MAX_DIFF_ROWS);
}

#[test]
fn an_opened_call_shows_all_of_it_as_text() {
    let exec = call(
        "exec",
        r#"{"command":"for a in 1 2; do\n  echo \"$a\"\ndone","timeout":60}"#,
        "status: failed\nexit_code: 1\nduration_ms: 12\nmessage: odd\n\none\n\ttwo\n",
    );
    let other = call("deploy", r#"{"to":"x","text":"a\n\"b\""}"#, "done\nwell");

    insta::assert_snapshot!(shown(&opened(&exec, 50)), @r#"
    ✗ exec  for a in 1 2; do …  exit code 1  two
      $ for a in 1 2; do
          echo "$a"
        done
      timeout: 60

      status: failed
      exit_code: 1
      message: odd

      one
          two
    "#);
    insta::assert_snapshot!(shown(&opened(&other, 50)), @r#"
    ✓ deploy  text: a "b", to: x  2 lines
      text:
        a
        "b"
      to: x

      done
      well
    "#);
    assert_eq!(shown(&opened(&call("edit_file", EDIT, "made 1 edit"), 60)).lines().count(), 6);
}

#[test]
fn reasoning_is_a_line_and_opened_a_text_with_a_bar() {
    let folded = reasoning_summary("a few words", Duration::from_millis(3_900));

    assert_eq!(folded.to_string(), "thought for 4 s, 3 words");
    assert_eq!(reasoning_summary("word", Duration::ZERO).to_string(), "thought, 1 word");
    assert_eq!(shown(&reasoning_lines("one two\n\nthree\n", 7)), "▌ one\n▌ two\n▌\n▌ three");
}

proptest! {
    #[test]
    fn every_row_fits_whatever_the_model_and_the_tool_say(
        name in prop_oneof![
            prop::sample::select(vec!["exec", "edit_file", "write_file", "todo", "search_text", "task_output"]).prop_map(str::to_owned),
            any::<String>(),
        ],
        arguments in prop_oneof![
            any::<String>(),
            prop::sample::select(vec![EDIT, "{}", "[]", r#"{"command":"日本\n\u001b"}"#, r#"{"path":1,"edits":[1,{}],"items":{}}"#])
                .prop_map(str::to_owned),
        ],
        content in prop_oneof![any::<String>(), any::<String>().prop_map(|output| format!("status: failed\n\n{output}")), Just(r#"{"status":"failed","output":"\u001b日\n","x":[1]}"#.to_owned())],
        is_error: bool,
        has_diff: bool,
        seconds in 0u64..10_000,
        width in 0u16..50,
    ) {
        let took = Duration::from_secs(seconds);
        let diff = has_diff.then(|| format!("--- a/x\n+++ b/{name}\n@@ -1,9 +1,9 @@\n+{content}\n-\t{content}\n"));
        let result = Some(CallResult { content: content.clone(), is_error, diff, lines: None });
        let call = Call { result, ..started(&name, &arguments) };

        let mut rows = vec![running_call_line(&call, width)];
        rows.extend(finished_call_lines(&call, took, width));
        rows.extend(call_detail_lines(&call, took, width));
        rows.extend(call_head_lines(&call, took, width));
        rows.extend(reasoning_lines(&content, width));

        for row in rows {
            prop_assert!(spans_width(&row.spans) <= usize::from(width.max(1)), "{row:?}");
            prop_assert!(!row.to_string().contains(char::is_control));
        }
    }
}

#[test]
fn the_lines_of_a_file_are_counted_with_empty_ones_and_without_the_notes_of_the_tool() {
    let row = |content: &str| shown(&finished(&call("read_file", r#"{"path":"a.toml"}"#, content), 60));

    assert_eq!(row("[package]\n\nname = 1\n\n[lines]\n"), "✓ read_file  a.toml  5 lines");
    assert_eq!(row("a\n\nb\n[lines 3–5 of 9; go on with offset 6]"), "✓ read_file  a.toml  3 lines");
    assert_eq!(row("a\r\nb\r\n[its lines end with \\r\\n]"), "✓ read_file  a.toml  2 lines");
    assert_eq!(row("[a.toml is empty]"), "✓ read_file  a.toml");
}

#[test]
fn the_words_for_the_model_where_an_output_is_cut_are_not_shown() {
    let cut =
        "[… 1 line (967415 bytes) is missing here; read_file with the path \"output:0\" reads the whole …]";
    let content = format!("status: completed\nexit_code: 0\n\nabc\n{cut}\nxyz\n");

    let rows = shown(&finished(&call("exec", r#"{"command":"x"}"#, &content), 70));

    assert!(
        rows.contains("… cut here, Ctrl-O shows all of it\n  xyz") && !rows.contains("read_file"),
        "{rows}"
    );
}
