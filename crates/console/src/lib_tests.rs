use super::*;

/// H8: the page loads no comments, and an error's line is the one in the file.
#[test]
fn comments_are_served_as_empty_lines() {
    let source =
        "// one\n/** two */\nconst a = 1; // stays\n/**\n * three\n */\n  /** @type {A} */ (a).b();\n";

    let served = blank_comments(source);

    assert_eq!(served, "\n\nconst a = 1; // stays\n\n\n\n  /** @type {A} */ (a).b();\n");
}

#[test]
fn each_file_is_served_once_and_keeps_its_lines() {
    let mut paths: Vec<&str> = FILES.iter().map(|file| file.path).collect();
    paths.sort_unstable();
    paths.dedup();

    assert_eq!(paths.len(), FILES.len());
    for file in &FILES {
        let served = file.bytes().iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(served, file.source.lines().count(), "{}", file.path);
    }
}
