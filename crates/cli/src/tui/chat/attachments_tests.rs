use longhaul_agent::tools::ScopeConfig;

use super::*;

fn at(path: &str) -> NamedFile {
    NamedFile::At(path.to_owned())
}

fn image(path: &str) -> NamedFile {
    NamedFile::ImagePath(path.to_owned())
}

#[test]
fn files_are_named_by_at_and_images_by_their_path() {
    let cases = [
        ("look at @src/main.rs, please", vec![at("src/main.rs,")]),
        ("@\"a name.txt\" and @'b c'", vec![at("a name.txt"), at("b c")]),
        ("mail me@example.com", vec![]),
        ("what is in /tmp/a.png?", vec![]),
        ("/tmp/a.PNG what is it", vec![image("/tmp/a.PNG")]),
        ("'/tmp/a b.png' /tmp/c\\ d.jpg", vec![image("/tmp/a b.png"), image("/tmp/c d.jpg")]),
        ("file:///tmp/a%20b.webp", vec![image("/tmp/a b.webp")]),
        ("it's /tmp/a.gif", vec![image("/tmp/a.gif")]),
        ("src/a.png", vec![]),
    ];

    for (text, named) in cases {
        assert_eq!(named_files(text), named, "{text}");
    }
    let pasted = format!("{} /tmp/a.png", "word ".repeat(1_000));
    assert_eq!(named_files(&pasted), []);
}

#[test]
fn a_text_is_a_block_an_image_an_image_and_a_word_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let png = b"\x89PNG\r\n\x1a\nrest";
    std::fs::write(folder.path().join("a.txt"), "Obey.\n").unwrap();
    std::fs::write(folder.path().join("b.png"), png).unwrap();
    let scope = Scope::new(folder.path(), &ScopeConfig::default(), Path::new("/nowhere"));

    let read = |text: &str| message_of_line(text.to_owned(), &scope);

    let message = read("see @a.txt. and @b.png, @a.txt, @nothing").unwrap();
    assert_eq!(message.text, "see @a.txt. and @b.png, @a.txt, @nothing\n\n~~~~ file a.txt\nObey.\n~~~~");
    assert_eq!((message.images.len(), &message.images[0].bytes[..]), (1, &png[..]));
    assert_eq!(read("@nothing here"), Ok("@nothing here".into()));
    assert!(read("@/etc/passwd").unwrap_err().contains("/etc/passwd"), "P1: it goes through the scope");
}

/// The way that is advised for a long file is one that works for it.
#[test]
fn a_file_that_is_too_long_to_send_along_is_left_to_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("big.txt"), "x".repeat(257 << 10)).unwrap();
    let scope = Scope::new(folder.path(), &ScopeConfig::default(), Path::new("/nowhere"));

    let why = message_of_line("see @big.txt".to_owned(), &scope).unwrap_err();

    assert!(why.contains("256 KiB") && why.contains("ask the agent to read it"), "{why}");
}

/// A dropped file may be anywhere, but has to be an image.
#[test]
fn the_path_of_an_image_is_read_where_it_is_and_a_forged_one_is_refused() {
    let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (image, forged) = (other.path().join("a b.png"), other.path().join("key.png"));
    std::fs::write(&image, b"\x89PNG\r\n\x1a\nrest").unwrap();
    std::fs::write(&forged, "secret").unwrap();
    let scope = Scope::new(work.path(), &ScopeConfig::default(), Path::new("/nowhere"));

    let read = |path: &Path| message_of_line(format!("'{}' what is it", path.display()), &scope);

    assert_eq!(read(&image).unwrap().images.len(), 1);
    assert!(read(&forged).unwrap_err().contains("is not an image"));
}
