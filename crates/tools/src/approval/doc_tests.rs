//! Every example in docs/approval.md, judged.

use super::ApprovalAction::{Ask, Auto, Deny};
use super::*;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/approval.md");
    std::fs::read_to_string(path).unwrap()
}

/// The part of the page below this heading.
fn section<'page>(page: &'page str, heading: &str) -> &'page str {
    let (_, rest) =
        page.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    rest.split("\n## ").next().unwrap()
}

/// What stands in backquotes.
fn examples(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The list of a section, and what stands behind it.
fn list_and_rest(section: &str) -> (&str, &str) {
    let start = section.find("\n- ").unwrap();
    section[start..].split_once("\n\n").unwrap()
}

#[track_caller]
fn assert_judged(approvals: &ApprovalPolicy, lines: &[&str], expected: ApprovalAction) {
    assert!(lines.len() > 5, "the page has lost its examples: {lines:?}");
    for line in lines {
        let verdict = judge(approvals, line);
        assert_eq!(verdict.action, expected, "{line:?}: {}", verdict.reason);
    }
}

/// P4
#[test]
fn the_table_at_a_glance_is_true() {
    let page = page();
    let rows = section(&page, "At a glance").lines().filter(|row| row.starts_with("| ")).skip(2);
    let approvals = approvals(Auto, &[("git push*", Deny)]);
    let mut examples_found = 0;

    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [_, understood, uncertain, not_promised] = cells.as_slice() else { panic!("{row}") };
        for (cell, expected) in [(understood, Deny), (uncertain, Ask), (not_promised, Auto)] {
            for line in examples(cell) {
                let verdict = judge(&approvals, line);
                assert_eq!(verdict.action, expected, "{line:?}: {}", verdict.reason);
                examples_found += 1;
            }
        }
    }
    assert!(examples_found > 40, "{examples_found}");
}

/// P4
#[test]
fn a_pattern_matches_what_the_page_says() {
    let page = page();
    let rows = section(&page, "What a rule is about").split("| pattern |").nth(1).unwrap().lines().skip(2);
    let rows: Vec<&str> = rows.take_while(|row| row.starts_with('|')).collect();

    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let cells: Vec<Vec<&str>> = row.split(" | ").map(examples).collect();
        let [pattern, matching, others] = cells.as_slice() else { panic!("{row}") };
        let approvals = approvals(Auto, &[(pattern[0], Ask)]);
        for (lines, expected) in [(matching, Ask), (others, Auto)] {
            for line in lines {
                let verdict = judge(&approvals, line);
                assert_eq!(verdict.action, expected, "{}: {line:?}: {}", pattern[0], verdict.reason);
            }
        }
    }
}

/// P4
#[test]
fn a_rule_also_matches_what_the_page_says() {
    let page = page();
    let (list, _) = list_and_rest(section(&page, "How a command line is judged"));

    assert_judged(&approvals(Auto, &[("git push*", Ask)]), &examples(list), Ask);
    // All of it is read, not only doubted.
    let lines: Vec<&str> = examples(list).into_iter().filter(|line| !line.starts_with("ssh -o")).collect();
    assert_judged(&approvals(Auto, &[("git push*", Deny)]), &lines, Deny);
}

/// P4
#[test]
fn a_rule_does_not_let_run_what_the_page_says() {
    let page = page();
    let section = section(&page, "What a rule does not let run");
    let (introduction, _) = section.split_once("\n- ").unwrap();
    let names = examples(introduction).into_iter().filter(|example| example.ends_with('*'));
    let approvals = approvals(Ask, &names.map(|name| (name, Auto)).collect::<Vec<_>>());
    let (list, rest) = list_and_rest(section);

    assert_judged(&approvals, &examples(list), Ask);
    assert_judged(&approvals, &examples(rest.split_once("\n\n").unwrap().0), Auto);
}

/// P4
#[test]
fn what_the_page_says_can_not_be_seen_is_asked_about() {
    let page = page();
    let (list, rest) = list_and_rest(section(&page, "What can't be seen"));
    let approvals = approvals(Auto, &[("git push*", Deny)]);
    // Examples of what is let run, and a pattern.
    let others = [
        "ls $x",
        "*",
        "xargs tar cf x --",
        "git -c user.name=x commit",
        "git -c color.ui=never log",
        "git config user.email x",
        "auto",
        "python3 -c *",
    ];
    let lines: Vec<&str> = examples(list).into_iter().filter(|line| !others.contains(line)).collect();

    assert_judged(&approvals, &lines, Ask);
    for line in others.into_iter().filter(|line| line.contains(' ') && !line.contains('*')) {
        assert!(list.contains(line), "{line}");
        assert_eq!(judge(&approvals, line).action, Auto, "{line}");
    }
    assert_judged(&approvals, &examples(rest), Auto);
}
