//! P1, P3: keys and credentials are as far away from the file tools as from commands.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::workplace::{SECRET, Workplace, call, content, error};

impl Workplace {
    /// Puts a secret into the user's home folder.
    fn put_key(&self, name: &str) -> PathBuf {
        let path = self.root.join("user").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, SECRET).unwrap();
        path
    }
}

/// Tries every tool on a protected path, and checks that what is there stays as it is.
async fn nothing_reaches(place: &Workplace, path: &str) {
    let tries = [
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "overwritten" })),
        ("edit_file", json!({ "path": path, "edits": [{ "old": "the secret", "new": "x" }] })),
        ("list_files", json!({ "path": path, "depth": 3 })),
        ("find_files", json!({ "path": path, "pattern": "*" })),
        ("search_text", json!({ "path": path, "pattern": "secret" })),
    ];
    for (tool, arguments) in tries {
        let said = error(place.call(tool, arguments).await);
        assert!(said.contains("is protected: keys and credentials"), "{tool} {path}: {said}");
    }
}

/// P3
#[tokio::test]
async fn keys_in_the_home_folder_are_not_reached_by_any_tool_however_they_are_named() {
    let place = Workplace::of_user(&["./"], &[("CARGO_HOME", "user/cargo")]);
    let key = place.put_key(".ssh/id_ed25519");
    for name in
        [".aws/credentials", ".npmrc", "cargo/credentials.toml", ".netrc", ".tsh/keys/one", ".viminfo"]
    {
        place.put_key(name);
    }
    symlink(&key, place.root.join("user/project/link")).unwrap();
    symlink("../.ssh", place.root.join("user/project/folder")).unwrap();

    for name in [
        ".ssh/id_ed25519",
        ".ssh",
        ".SSH/new_key",
        ".aws/credentials",
        ".npmrc",
        ".netrc",
        ".tsh/keys/one",
        ".viminfo",
        "cargo/credentials.toml",
        "project/link",
        "project/folder/id_ed25519",
        "project/../.ssh/id_ed25519",
        ".config/gh/hosts.yml",
    ] {
        nothing_reaches(&place, place.root.join("user").join(name).to_str().unwrap()).await;
    }
    nothing_reaches(&place, &format!("/proc/self/root{}", key.display())).await;
    assert_eq!(fs::read_to_string(&key).unwrap(), SECRET);
}

/// P3
#[tokio::test]
async fn keys_are_found_where_the_home_folder_and_its_parts_are_links() {
    let place = Workplace::of_user(&["../disk", "./"], &[("HOME", "people/me")]);
    fs::create_dir_all(place.root.join("disk/me/.config")).unwrap();
    fs::create_dir_all(place.root.join("disk/secrets/gh")).unwrap();
    fs::write(place.root.join("disk/me/.netrc"), SECRET).unwrap();
    fs::write(place.root.join("disk/secrets/gh/hosts.yml"), SECRET).unwrap();
    symlink("disk", place.root.join("people")).unwrap();
    symlink("../../secrets/gh", place.root.join("disk/me/.config/gh")).unwrap();

    let protected = ["disk/me/.netrc", "people/me/.netrc", "disk/secrets/gh/hosts.yml"];

    for name in protected {
        // The links were made after the scope: where keys are is found out at each call.
        let said = error(place.read(place.root.join(name).to_str().unwrap()).await);
        assert!(said.contains("is protected") || said.contains("outside"), "{name}: {said}");
    }
}

/// P3
#[tokio::test]
async fn a_hard_link_to_a_key_file_is_still_a_key() {
    let place = Workplace::of_user(&["./"], &[]);
    let key = place.put_key(".netrc");
    let link = place.root.join("user/project/notes.txt");
    fs::hard_link(&key, &link).unwrap();

    let said = error(place.read(link.to_str().unwrap()).await);

    assert!(said.contains("is protected"), "{said}");
}

/// P3
#[tokio::test]
async fn listing_and_searching_pass_over_keys() {
    let place = Workplace::of_user(&["./"], &[]);
    for name in [".ssh/id_ed25519", ".npmrc", ".bash_history"] {
        place.put_key(name);
    }
    fs::write(place.root.join("user/project/main.rs"), "the secret is elsewhere").unwrap();
    let user = place.root.join("user");
    let user = user.to_str().unwrap();

    let listed = content(place.call("list_files", json!({ "path": user, "depth": 4 })).await);
    let found = content(place.call("find_files", json!({ "path": user, "pattern": "**/*" })).await);
    let searched = content(place.call("search_text", json!({ "path": user, "pattern": "the secret" })).await);

    for said in [&listed, &found, &searched] {
        assert!(said.contains("main.rs"), "{said}");
        assert!(!said.contains("id_ed25519") && !said.contains(".npmrc") && !said.contains(SECRET), "{said}");
    }
}

/// P3: as for commands, naming one thing allows that thing alone.
#[tokio::test]
async fn what_the_scope_names_among_keys_is_allowed_and_the_rest_stays_protected() {
    let place = Workplace::of_user(&["./", ".ssh/known_hosts", ".aws"], &[]);
    for name in [".ssh/id_ed25519", ".ssh/known_hosts", ".ssh/KNOWN_HOSTS", ".aws/config"] {
        place.put_key(name);
    }
    let path = |name: &str| place.root.join("user").join(name).to_str().unwrap().to_owned();

    assert_eq!(content(place.read(&path(".ssh/known_hosts")).await), SECRET);
    assert_eq!(content(place.read(&path(".aws/config")).await), SECRET);
    for name in [".ssh", ".ssh/id_ed25519", ".ssh/KNOWN_HOSTS"] {
        nothing_reaches(&place, &path(name)).await;
    }
    let listed = content(place.call("list_files", json!({ "path": path(""), "depth": 3 })).await);
    assert!(!listed.contains("id_ed25519"), "{listed}");
}

/// P3: the environment of the runtime holds its API keys.
#[tokio::test]
async fn what_the_system_tells_of_processes_is_protected() {
    let place = Workplace::of_user(&["/"], &[]);

    for path in ["/proc/self/environ", "/proc/self/fd", "/proc/thread-self/environ", "/proc/1/environ"] {
        let said = error(place.read(path).await);
        assert!(said.contains("is protected"), "{path}: {said}");
    }
    assert!(content(place.read("/proc/version").await).contains("Linux"));
}

/// P4: the shell runs it later, outside of any sandbox.
#[tokio::test]
async fn writing_a_startup_file_needs_a_person_unless_the_scope_names_it() {
    let place = Workplace::of_user(&["./", ".zshrc"], &[("PATH", "user/miniconda3/bin")]);
    fs::create_dir(place.root.join("user/.config")).unwrap();
    symlink("../.bashrc", place.root.join("user/project/innocent")).unwrap();
    fs::write(place.root.join("user/.bashrc"), "old").unwrap();

    let asked = [
        ".bashrc",
        ".BASHRC",
        "project/innocent",
        ".bash_profile",
        ".local/bin/ls",
        ".config/autostart/x.desktop",
        ".cargo/bin/cargo",
        ".cargo/env",
        ".nvm/nvm.sh",
        "go/bin/gopls",
        "miniconda3/bin/python",
    ];
    for (names, is_asked) in [(asked.as_slice(), true), (&[".zshrc", "a.txt", "miniconda3/a.txt"], false)] {
        for name in names {
            let path = place.root.join("user").join(name);
            let arguments = json!({ "path": path, "content": "new" });
            let prepared = place.tool("write_file").prepare(&call(&arguments)).await.unwrap();
            assert_eq!(prepared.caution.is_some(), is_asked, "{name}");
        }
    }
}

/// P4: a project's own programs may be on `PATH`, such as those of an active virtual environment.
#[tokio::test]
async fn a_folder_of_path_in_an_allowed_project_is_the_projects_own() {
    let place = Workplace::of_user(&["project"], &[("PATH", "user/project/venv/bin")]);
    let path = place.root.join("user/project/venv/bin/tool");

    let prepared =
        place.tool("write_file").prepare(&call(&json!({ "path": path, "content": "x" }))).await.unwrap();

    assert_eq!(prepared.caution, None);
}
