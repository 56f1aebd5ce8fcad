use longhaul_protocol::{
    At, CallId, CompactedBy, Effect, OrderKind, Outcome, PermissionMode, QuestionId, Role, TaskId, TaskStatus,
};

use super::*;
use crate::block::{Call, CallResult, CompactionOutcome, Retry};
use crate::cost::SessionCost;

/// Texts that became markup or script somewhere.
const PAYLOADS: [&str; 45] = [
    "[x](http:api/logout)",
    "<script>alert(1)</script>",
    "</article><script>alert(1)</script>",
    "</pre></details></article><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](https://a.b/\"onclick=\"alert(1))",
    "[x](https://a.b/%22%3E%3Cscript%3E)",
    "[x](<https://a.b/' onclick='alert(1)>)",
    "![x](https://a.b/x.png\"onerror=\"alert(1))",
    "![x](javascript:alert(1))",
    "[![x](https://a.b/x.png)](https://c.d)",
    "<javascript:alert(1)>",
    "<https://a.b/?q=\"><script>alert(1)</script>>",
    "<a@b.c\"onclick=alert(1)>",
    "[x]: javascript:alert(1)\n[x]",
    "[x]\n\n[x]: https://a.b \"</a><script>\"",
    "```html\n<script>alert(1)</script>\n```",
    "```\"><script>alert(1)</script>\nx\n```",
    "`<script>`",
    "# <img src=x onerror=alert(1)>",
    "- <script>\n  - </li></ul><script>\n    > </blockquote>",
    "1. x\n99999999999999999999. y\n3. <b>",
    "| a | <b> |\n|:-:|--:|\n| </td></table><script> | x |\n| [x](javascript:1) | <br> |",
    "<table><tr><td><!-- --!> <script>",
    "<!-- <script>alert(1)</script> -->",
    "<![CDATA[<script>]]>",
    "<?xml version=\"1.0\"?><x/>",
    "<style>@import 'https://a.b'</style>",
    "<base href=https://a.b><meta http-equiv=refresh content=0>",
    "<form action=https://a.b><input name=x></form>",
    "<p id=turn-1 style=position:fixed>",
    "&lt;script&gt;&#60;script&#62;&amp;lt;",
    "\u{202e}txt.exe\u{2066} \u{1b}[31m\u{0}\u{200f}\u{feff}",
    "*a **b ***c ****d _e __f ~~g [h](https://i.j) ~~ ** * _",
    "{\"command\": \"</pre><script>\", \"work_dir\": \"\\\" onload=\\\"\", \"<b>\": \"<i>\\n<u>\"}",
    "--- a/<b>\n+++ b/</p><script>\n@@ -1,2 +1,2 @@\n-<script>\n+</del><img src=x onerror=y>\n </pre>\n… 3 more lines, +1 −2",
];

/// Elements that fragments consist of, and the attributes that each may have.
const ALLOWED: [(&str, &[&str]); 35] = [
    ("a", &["href", "rel", "target"]),
    ("article", &["class", "data-seq", "aria-label"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &[]),
    ("dd", &["dir"]),
    ("del", &["class"]),
    ("details", &["class", "open"]),
    ("div", &["class", "dir", "role", "aria-label"]),
    ("dl", &[]),
    ("dt", &["dir"]),
    ("em", &[]),
    ("footer", &[]),
    ("h2", &[]),
    ("h3", &["dir"]),
    ("h4", &["dir"]),
    ("h5", &["dir"]),
    ("h6", &["dir"]),
    ("hr", &[]),
    ("ins", &["class"]),
    ("li", &["class", "dir"]),
    ("ol", &["start"]),
    ("p", &["class", "dir"]),
    ("pre", &["class", "dir"]),
    ("span", &["class"]),
    ("strong", &[]),
    ("summary", &["dir"]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["class", "dir"]),
    ("th", &["class", "dir", "scope"]),
    ("thead", &[]),
    ("time", &["datetime"]),
    ("tr", &[]),
    ("ul", &["class"]),
];

/// Checks a fragment as strictly as no browser does: one root, every element closed in its order, only known elements and attributes,
/// every attribute in quotes, and no `<`, `>` or `&` in text that is not one of our own references.
fn check_fragment(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let (mut rest, mut roots) = (html, 0);
    let mut with_direction = 0;
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at], html);
        let end = at + rest[at..].find('>').unwrap_or_else(|| panic!("an open tag in {html}"));
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{html}");
            with_direction = if open.len() < with_direction { 0 } else { with_direction };
            continue;
        }
        roots += usize::from(open.is_empty());
        let (name, attributes) =
            tag.trim_end_matches('/').split_once(' ').unwrap_or((tag.trim_end_matches('/'), ""));
        let known = ALLOWED.iter().find(|(known, _)| *known == name);
        let (_, allowed) = known.unwrap_or_else(|| panic!("<{tag}> in {html}"));
        check_attributes(attributes, allowed, html);
        if !tag.ends_with('/') {
            open.push(name);
        }
        // A browser looks through the outer element again for each inner one.
        if with_direction > 0 {
            assert!(!attributes.contains("dir="), "<{tag}> in an element with a direction in {html}");
        } else if attributes.contains("dir=") {
            with_direction = open.len();
        }
    }
    check_text(rest, html);
    assert!(open.is_empty() && roots <= 1, "{roots} roots in {html}");
}

fn check_attributes(mut attributes: &str, allowed: &[&str], html: &str) {
    while !attributes.is_empty() {
        let (name, value) = attributes.split_once("=\"").unwrap_or_else(|| panic!("{attributes} in {html}"));
        assert!(allowed.contains(&name), "{name} in {html}");
        let (value, next) = value.split_once('"').unwrap_or_else(|| panic!("{attributes} in {html}"));
        check_text(value, html);
        if name == "href" {
            let schemes = ["http://", "https://", "mailto:"];
            assert!(schemes.iter().any(|scheme| value.to_lowercase().starts_with(scheme)), "{value}");
        }
        attributes = next.strip_prefix(' ').unwrap_or(next);
    }
}

fn check_text(text: &str, html: &str) {
    assert!(!text.contains(['>', '"', '\'', '\u{202e}', '\u{2066}', '\u{1b}', '\0']), "{text:?} in {html}");
    for reference in text.split('&').skip(1) {
        let name = reference.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name} in {html}");
    }
}

fn block(state: BlockState, content: BlockContent) -> Block {
    let ended_at = (state != BlockState::Running).then_some(At(2_000));
    Block { id: 1, seq: Some(7), turn: Some(1), started_at: At(0), ended_at, state, content }
}

fn call(name: &str, arguments: &str, result: Option<CallResult>) -> BlockContent {
    let (call, effect) = (CallId::generate(), Some(Effect::Read));
    BlockContent::Call(Call { call, name: name.into(), arguments: arguments.into(), effect, result })
}

/// A question with this text wherever it has one.
fn asked(question: QuestionId, text: Option<String>) -> BlockContent {
    let kind = longhaul_protocol::QuestionKind::default();
    BlockContent::Question { question, kind, diff: text.clone(), answer: text.clone(), text }
}

/// Every kind of block that has text, with this text wherever it has one.
fn blocks_with(text: &str) -> Vec<Block> {
    let said = || text.to_owned();
    let result = |is_error, diff| Some(CallResult { content: said(), is_error, diff, lines: Some(9) });
    let report = format!("status: failed\nexit_code: 3\n\n{text}");
    let report = CallResult { content: report, is_error: false, diff: None, lines: None };
    let field = |key: &str| serde_json::json!({ key: text, text: text }).to_string();
    let todo = serde_json::json!({"items": [{"text": text, "status": "done"}, {"text": text, "status": "in_progress"}]});
    let edits =
        serde_json::json!({"path": text, "edits": [{"old": "x", "new": text}, {"old": text, "new": "y"}]});
    let end = TurnEnd {
        outcome: Outcome::Failed,
        limit: None,
        text: said(),
        error: Some(said()),
        code: Some(said()),
        took_ms: Some(1),
        steps: 1,
        spend: SessionCost::default(),
    };
    let (task, question) = (TaskId::from(CallId::generate()), QuestionId::generate());
    let retry = Retry { class: said(), attempt: 1, max_attempts: 2, delay_ms: 5, reason: said() };
    let contents = vec![
        BlockContent::TurnStart { cause: None },
        BlockContent::Input { text: said(), images: 2, from: None, fork_at: None },
        BlockContent::Message { role: Role::Assistant, text: said() },
        BlockContent::Reasoning { text: said() },
        call(text, text, result(false, None)),
        call("exec", &field("command"), Some(report.clone())),
        call("exec", text, result(true, Some(said()))),
        call("task_output", &field("task_id"), Some(report)),
        call("edit_file", &edits.to_string(), None),
        call("edit_file", &edits.to_string(), result(false, Some(said()))),
        call("write_file", &field("content"), result(false, None)),
        call("read_file", &field("path"), result(false, None)),
        call("todo", &todo.to_string(), result(false, None)),
        call("patch", &field("patch"), result(true, None)),
        BlockContent::Task {
            task,
            description: Some(said()),
            status: TaskStatus::Failed,
            exit_code: Some(3),
        },
        asked(question, Some(said())),
        asked(question, None),
        BlockContent::Retry(retry),
        BlockContent::Compaction { reason: Some(said()), outcome: None },
        BlockContent::Compaction {
            reason: None,
            outcome: Some(CompactionOutcome::Failed { reason: said() }),
        },
        BlockContent::Compaction {
            reason: None,
            outcome: Some(CompactionOutcome::Done { epoch: 2, by: CompactedBy::Model, before: 9, after: 3 }),
        },
        BlockContent::Summary { text: said() },
        BlockContent::Stubs { results: 3 },
        BlockContent::PromptChange,
        BlockContent::Model { name: said() },
        BlockContent::ModeChange { from: PermissionMode::Ask, to: PermissionMode::Auto },
        BlockContent::ModelChange { from: said(), to: said(), reason: said() },
        BlockContent::AttemptFailure { error: said() },
        BlockContent::Order(OrderKind::AddContext { text: said() }),
        BlockContent::MemoryChange { pages: vec![said()] },
        BlockContent::Extraction { through: 3 },
        BlockContent::Notification { task },
        BlockContent::Note { text: said() },
        BlockContent::Warning { code: said(), text: said() },
        BlockContent::Import { work_dir: Some(said()), mine: false },
        BlockContent::TurnEnd(end),
        BlockContent::UnfinishedTurn { turn: 1 },
        BlockContent::ErasedRecord { seq: 1, kind: said(), at: At(0), reason: said() },
        BlockContent::DamagedRecord { seq: 1, reason: said() },
    ];
    let states = [BlockState::Finished, BlockState::Running, BlockState::Failed, BlockState::Interrupted];
    let all = contents.iter().flat_map(|content| states.map(|state| block(state, content.clone())));
    all.collect()
}

/// H8: text of models and tools never becomes markup or script, in no kind of block.
#[test]
fn no_text_becomes_markup_in_any_kind_of_block() {
    for payload in PAYLOADS {
        for payload in [payload.to_owned(), format!("x {payload} y"), format!("> - {payload}\n\n{payload}")] {
            for block in blocks_with(&payload) {
                let html = block_html(&block);
                check_fragment(&html);
                assert!(html.is_empty() || html.starts_with("<article class=\"block "), "{html}");
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// H8: neither does text that nobody thought of.
    #[test]
    fn no_random_text_becomes_markup(text in "([ -~\n]|[<>\"'&`*_\\[\\]()|#:!-]){0,80}") {
        check_fragment(&format!("<article>{}</article>", markdown_html(&text)));
        for block in blocks_with(&text).iter().step_by(3) {
            check_fragment(&block_html(block));
        }
    }
}

#[test]
fn markdown_becomes_the_elements_that_it_means() {
    let text = "# Title\n\nSome *text* with `code`, [a link](https://a.b/?x=1&y=2) and [none](file:///etc).\n\n\
                - one\n  - nested\n- [x] two\n\n3. three\n4. four\n\n> quoted\n\n\
                | a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\n<b>raw</b>\n\n***\n\nend";

    insta::assert_snapshot!(markdown_html(text), @r##"
    <h3 dir="auto">Title</h3>
    <p dir="auto">Some <em>text</em> with <code>code</code>, <a href="https://a.b/?x=1&amp;y=2" rel="noreferrer noopener" target="_blank">a link</a> and none (file:///etc).</p>
    <ul>
    <li><p dir="auto">one</p>
    <ul>
    <li><p dir="auto">nested</p>
    </li>
    </ul>
    </li>
    <li class="done"><span class="state">done:</span> <p dir="auto">two</p>
    </li>
    </ul>
    <ol start="3">
    <li><p dir="auto">three</p>
    </li>
    <li><p dir="auto">four</p>
    </li>
    </ol>
    <blockquote>
    <p dir="auto">quoted</p>
    </blockquote>
    <table>
    <thead>
    <tr><th scope="col" dir="auto">a</th><th scope="col" class="right" dir="auto">b</th></tr>
    </thead>
    <tbody>
    <tr><td dir="auto">1</td><td class="right" dir="auto">2</td></tr>
    </tbody>
    </table>
    <pre class="code" dir="auto"><code><span class="hl-keyword">fn</span> <span class="hl-function">main</span>() {}</code></pre>
    <p dir="auto">&lt;b&gt;raw&lt;/b&gt;</p>
    <hr/>
    <p dir="auto">end</p>
    "##);
}

#[test]
fn a_call_has_the_words_of_the_terminal_and_its_details() {
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -9,2 +9,2 @@\n same\n-old\n+new <b>";
    let result = CallResult { content: "ok".into(), is_error: false, diff: Some(diff.into()), lines: None };
    let edit = call("edit_file", r#"{"path": "a.txt", "edits": []}"#, Some(result));

    // The time is that of the machine's zone.
    let html = block_html(&block(BlockState::Finished, edit)).replace(&time_element(At(0)), "TIME");
    insta::assert_snapshot!(html, @r##"
    <article class="block call" data-seq="7" aria-label="Tool call">
    <details class="call ok">
    <summary dir="auto"><span class="good">✓ </span><strong>edit_file</strong>  a.txt  <span class="good">+1</span> <span class="bad">−1</span>  <span class="quiet">2 s</span></summary>
    <p class="meta">TIME</p>
    <div class="changes" role="group" aria-label="Changes">
    <p class="file" dir="auto">a.txt</p>
    <pre class="diff" dir="auto"><span class="context"><span class="number"> 9</span>   same</span>
    <del class="del"><span class="number">10</span> − old</del>
    <ins class="add"><span class="number">10</span> + new &lt;b&gt;</ins>
    </pre>
    </div>
    </details>
    </article>
    "##);
}

#[test]
fn a_running_command_shows_what_it_runs() {
    let html = block_html(&block(BlockState::Running, call("exec", r#"{"command": "make <all>"}"#, None)));

    assert!(
        html.starts_with("<article class=\"block call running\" data-seq=\"7\" aria-label=\"Tool call\">"),
        "{html}"
    );
    assert!(html.contains("<details class=\"call running\">"), "{html}");
    assert!(
        html.contains("<strong>exec</strong>  make &lt;all&gt;  <span class=\"state\">running</span>"),
        "{html}"
    );
    assert!(html.contains("<pre class=\"command\" dir=\"auto\">make &lt;all&gt;</pre>"), "{html}");
}

/// A fragment stays small, whatever a tool printed.
#[test]
fn long_output_is_cut_in_its_middle_and_says_so() {
    let content = format!("begin{}end", "line of output\n".repeat(100_000));
    let result = CallResult { content, ..CallResult::default() };
    let html = block_html(&block(BlockState::Finished, call("read_file", "{}", Some(result))));

    assert!(html.len() < 2 * fragment::MAX_OUTPUT_BYTES, "{}", html.len());
    assert!(html.contains("begin") && html.contains("end</pre>"));
    assert!(
        html.contains("[… 1,434,472 bytes are not shown …]"),
        "{}",
        &html[html.len() / 2 - 200..html.len() / 2 + 200]
    );
}

#[test]
fn a_long_diff_and_long_code_stay_bounded() {
    let lines: String = (0..50_000).map(|line| format!("+let x{line} = \"<&>\";\n")).collect();
    let diff = format!("--- a/x.rs\n+++ b/x.rs\n@@ -0,0 +1,50000 @@\n{lines}");
    let result = CallResult { diff: Some(diff), ..CallResult::default() };
    let html = block_html(&block(BlockState::Finished, call("write_file", "{}", Some(result))));
    assert!(html.len() < 8 * fragment::MAX_OUTPUT_BYTES, "{}", html.len());
    assert!(html.contains("more lines not shown"));

    let code = format!("```rust\n{}\n```", "let x = \"<&>\";\n".repeat(50_000));
    assert!(markdown_html(&code).len() < 1 << 20);
}

/// Texts whose markup is much larger than what is written.
fn texts_that_grow() -> Vec<String> {
    let table = |columns: usize, align: &str, rows: usize, row: &str| {
        format!("{}|\n{}|\n{}", "|a".repeat(columns), format!("|{align}").repeat(columns), row.repeat(rows))
    };
    vec![
        table(200, "-", 100, "|b\n"),
        table(900, "-", 20_000, "|b\n"),
        table(100, "-:", 1_000, &format!("{}|\n", "|b".repeat(100))),
        table(100, "-:", 1_000, &format!("{}b|\n", "|".repeat(100))),
        table(2_000, "-:", 3_000, "|b\n"),
        "- a\n".repeat(20_000),
        "- - - - - - a\n".repeat(5_000),
        ">>>>>>>>>>>>a\n\n".repeat(5_000),
        "#\n".repeat(20_000),
        "```\n```\n".repeat(10_000),
        format!("```rust\n{}\n```", "1 ".repeat(30_000)),
        "[](http://a)".repeat(20_000),
        "\"".repeat(500_000),
        "*a*".repeat(50_000),
    ]
}

/// H8: what a model writes can't freeze the page of its session.
#[test]
fn no_block_is_much_larger_than_its_text() {
    for text in texts_that_grow() {
        let result = CallResult { content: text.clone(), ..CallResult::default() };
        let diff =
            format!("--- a/a\n+++ b/a\n@@ -0,0 +1,{} @@\n{}", text.len(), "+\n".repeat(text.len() / 2));
        let edit = CallResult { diff: Some(diff), ..CallResult::default() };
        let contents = [
            BlockContent::Message { role: Role::Assistant, text: text.clone() },
            BlockContent::Reasoning { text: text.clone() },
            call("read_file", "{}", Some(result)),
            call("edit_file", "{}", Some(edit)),
        ];
        for content in contents {
            let html = block_html(&block(BlockState::Finished, content));
            let start: String = text.chars().take(40).collect();
            check_fragment(&html);
            assert!(
                html.len() <= 20 * text.len() + 4_096,
                "{} bytes of {} for {start}",
                html.len(),
                text.len()
            );
            assert!(html.len() <= MAX_BLOCK_HTML + 1_024, "{} bytes for {start}", html.len());
        }
    }
}

#[test]
fn a_table_has_the_cells_that_were_written() {
    let html = markdown_html("|a|b|c|\n|-|-|-|\n|1|\n|2||3|\n|4|5|6|");

    assert_eq!(html.matches("<td").count(), 1 + 3 + 3, "{html}");
    assert!(html.contains("<td dir=\"auto\">2</td><td></td><td dir=\"auto\">3</td></tr>"), "{html}");
}

#[test]
fn a_text_with_too_many_cells_is_shown_as_it_was_written() {
    let html =
        markdown_html(&format!("<b>\n\n{}\n{}\n{}", "|a".repeat(300), "|-".repeat(300), "|x\n".repeat(100)));

    assert!(
        html.starts_with(
            "<p class=\"note\" dir=\"auto\">[too much markup: shown as it was written]</p>\n<pre"
        ),
        "{html}"
    );
    assert!(html.contains("&lt;b&gt;\n\n|a|a"), "{html}");
}

#[test]
fn a_block_that_is_too_large_says_so() {
    let text = "\"".repeat(MAX_TEXT_BYTES);
    let input = BlockContent::Input { text, images: 0, from: None, fork_at: None };
    let html = block_html(&block(BlockState::Finished, input));

    assert!(html.len() < 1_024 && html.contains("[not shown: 1,572,"), "{}", html.len());
}

/// A browser would find no date in the attribute.
#[test]
fn a_time_outside_of_the_calendar_is_text() {
    let mut old = block(BlockState::Finished, BlockContent::TurnStart { cause: None });
    old.started_at = At(9_000_000_000_000_000);

    let html = block_html(&old);

    assert!(html.contains("9000000000000000 ms since 1970") && !html.contains("<time"), "{html}");
}

#[test]
fn a_turn_says_what_began_it_unless_a_person_did() {
    let heading = |cause| block_html(&block(BlockState::Finished, BlockContent::TurnStart { cause }));

    let by_schedule = heading(Some(Cause::Schedule));
    let [by_person, unknown] = [Some(Cause::Turn), None].map(heading);

    assert!(by_schedule.contains("Turn 1 <span class=\"cause\">by a schedule</span> <time"), "{by_schedule}");
    assert_eq!(by_person, unknown);
    assert!(unknown.contains("Turn 1 <time"), "{unknown}");
}

/// The parser fills each row up to the width of its table, so a few hundred bytes could become a hundred thousand cells.
#[test]
fn a_short_row_of_a_wide_table_has_only_the_cells_that_were_written() {
    let head = "|a".repeat(50);
    let rule = "|-".repeat(50);
    let rows = "|b||c\n".repeat(100);

    let html = markdown_html(&format!("{head}\n{rule}\n{rows}"));

    assert_eq!(html.matches("<th ").count(), 50);
    assert_eq!(html.matches("<td").count(), 300, "a cell between others stays");
}
