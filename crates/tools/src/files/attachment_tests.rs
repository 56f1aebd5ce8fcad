use super::*;
use crate::ScopeConfig;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn work_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    folder
}

fn scope_of(folder: &Path) -> Scope {
    Scope::new(&folder.join("work"), &ScopeConfig::default(), &folder.join("home"))
}

/// P1: `@` reaches what the agent may read, and nothing else.
#[test]
fn a_file_is_sent_along_only_from_within_the_scope() {
    let folder = work_folder();
    std::fs::write(folder.path().join("work/a.txt"), "text").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret.txt", folder.path().join("work/link.txt")).unwrap();
    let scope = scope_of(folder.path());

    assert_eq!(Attachment::read_in_scope(&scope, "a.txt"), Ok(Attachment::Text("text".to_owned())));
    for outside in ["../secret.txt", "link.txt", "/etc/passwd"] {
        assert!(Attachment::read_in_scope(&scope, outside).is_err(), "{outside}");
    }
}

#[test]
fn an_image_is_known_by_its_content() {
    let folder = work_folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join("work").join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let (image, text, binary) = (file("a.txt", PNG), file("b.png", b"text"), file("c.png", b"\0\x01\x02"));
    let large = file("d.png", &[PNG, &vec![0; 6 << 20]].concat());

    let read = |path: &Path| Attachment::read_image(path);

    assert_eq!(read(&image), Ok(Attachment::Image { media_type: "image/png", bytes: PNG.to_vec() }));
    assert!(read(&text).unwrap_err().contains("b.png is not an image"));
    assert!(read(&binary).unwrap_err().contains("neither text nor an image"));
    assert!(read(&large).unwrap_err().contains("more than 5 MiB"));
    assert!(read(&folder.path().join("none.png")).unwrap_err().contains("can't be read"));
    assert!(read(folder.path()).unwrap_err().contains("is not a file"));
}
