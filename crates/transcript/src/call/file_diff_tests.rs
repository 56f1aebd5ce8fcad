use super::*;

const DIFF: &str = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -98,4 +98,5 @@\n fn a() {\n-    one();\n--- two\n+    1();\n+\tif deeply {\n+        2()\n }\n@@ -200 +202 @@\n-old\n+new\n\\ No newline at end of file\n";

fn shown(diff: &str, width: u16, max_lines: usize) -> String {
    let rows = FileDiff::parse(diff).lines(width, max_lines);
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_diff_has_line_numbers_context_and_indentation() {
    insta::assert_snapshot!(shown(DIFF, 40, 100), @r"
     98   fn a() {
     99 -     one();
    100 - -- two
     99 +     1();
    100 +     if deeply {
    101 +         2()
    102   }
      ⋮
    200 - old
    202 + new
    ");
    let parsed = FileDiff::parse(DIFF);
    assert_eq!((parsed.added, parsed.removed, parsed.is_new_file()), (4, 3, false));
}

#[test]
fn rows_of_a_long_line_stay_below_its_indentation() {
    let diff =
        "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+        words that do not fit into one row at all\n";

    insta::assert_snapshot!(shown(diff, 34, 100), @r"
    1 +         words that do not
                fit into one row at
                all
    ");
    assert!(FileDiff::parse(diff).is_new_file());
}

#[test]
fn what_is_left_out_is_counted() {
    let cut = "--- a/x\n+++ b/x\n@@ -1,50 +1,50 @@\n a\n-b\n+c\n… 120 more lines, +80 −40\n";

    assert!(shown(cut, 40, 100).ends_with("… 120 more lines"), "{}", shown(cut, 40, 100));
    assert!(shown(cut, 40, 2).ends_with("… 121 more lines"));
    let parsed = FileDiff::parse(cut);
    assert_eq!((parsed.added, parsed.removed), (81, 41));
}

#[test]
fn several_files_have_their_names_above_their_changes() {
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";

    insta::assert_snapshot!(shown(diff, 40, 100), @r"
    x
    1 - a
    1 + b
    gone
    1 - a
    ");
}

#[test]
fn nonsense_is_no_diff_and_breaks_nothing() {
    for text in
        ["", "@@ -1,9 +1,9 @@\n+x", "+++ \n@@ -x +y @@\n+a", "@@ -1 +99999999999999999999 @@", "… x more"]
    {
        assert_eq!(shown(text, 1, 3), "", "{text}");
    }
}
