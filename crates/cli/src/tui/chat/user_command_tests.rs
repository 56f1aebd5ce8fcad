use super::*;

#[test]
fn one_mark_tells_the_model_and_two_do_not() {
    let parsed = |line| UserCommand::parse(line).map(|parsed| (parsed.command, parsed.reader));

    assert_eq!(parsed("!git status"), Some(("git status", CommandReader::UserAndModel)));
    assert_eq!(parsed("!! git status "), Some(("git status", CommandReader::UserAlone)));
    assert_eq!(parsed("!"), Some(("", CommandReader::UserAndModel)));
    assert_eq!(parsed(" !git status"), None);
    assert_eq!(parsed("not !this"), None);
}

#[test]
fn the_model_gets_both_ends_of_a_long_output() {
    let mut captured = CapturedOutput::default();
    captured.push(b"first line\n");
    (0..100_000).for_each(|_| captured.push(b"0123456789\n"));
    captured.push(b"last line\n");

    let told = captured.for_model(&Redactor::default());

    assert!(told.starts_with("first line\n0123"), "{}", &told[..40]);
    assert!(told.ends_with("0123456789\nlast line\n"));
    assert!(told.contains("[… of 1100021 bytes the middle is left out …]"));
    assert!(told.len() < 2 * MAX_TOLD_BYTES + 100);
}

#[test]
fn a_short_output_is_told_as_it_is() {
    let mut captured = CapturedOutput::default();
    captured.push("one\r\ntwö\n".as_bytes());

    assert_eq!(captured.for_model(&Redactor::default()), "one\ntwö\n");
}
