use super::*;

#[test]
fn a_result_is_read_in_its_present_and_its_former_form() {
    let now = "status: failed\nexit_code: 3\nduration_ms: 12\nmessage: odd: very\n\none\n\ntwo\n";
    let before =
        r#"{"status":"failed","output":"one\n\ntwo\n","exit_code":3,"duration_ms":12,"message":"odd: very"}"#;

    for content in [now, before] {
        let result = CommandResult::parse(content).unwrap();
        assert_eq!(result.status(), "failed");
        assert_eq!(result.exit_code(), Some(3));
        assert_eq!(result.field("message"), Some("odd: very"));
        assert_eq!(result.output, "one\n\ntwo\n");
    }
    assert_eq!(
        CommandResult::parse("status: background_started\ntask_id: task_01jq4z5v8k2m9x7w3r6t1y0b4n\n")
            .unwrap()
            .output,
        ""
    );
    assert_eq!(CommandResult::parse("a: b\n\nc"), None, "it has no status");
    assert_eq!(CommandResult::parse("status: completed\nno field\n\nc"), None);
    assert_eq!(CommandResult::parse("{nonsense"), None);
}

#[test]
fn lines_that_were_cut_out_are_counted() {
    let cut = "a\nb\n[… 99,749 lines (488000 bytes) are missing here; read_file with the path \"output:x\" reads the whole …]\nc\n";
    let unknown = "a\n[… 488000 bytes were not kept …]\nb\n";

    assert_eq!(LineCount::of(cut), LineCount::Exact(99_752));
    assert_eq!(LineCount::of(unknown), LineCount::MoreThan(2));
    assert_eq!(LineCount::of("[… what …]\n"), LineCount::Exact(1));
    assert_eq!(LineCount::of(""), LineCount::Exact(0));
}
