//! Caches: a command uses those of the user, and what it puts there the user never meets.

use std::fs;

use longhaul_tools::SandboxMode;

use crate::workplace::Workplace;

/// Something of each that the user runs later, or that a build takes without looking at it.
const PLANTED: [&str; 20] = [
    ".npm/_npx/x/node_modules/.bin/tool",
    ".npm/_cacache/content",
    ".cache/pre-commit/repo/hook",
    ".cache/p10k-instant-prompt.zsh",
    ".cache/pip/wheels/tool.whl",
    ".cache/uv/archive-v0/tool.py",
    ".cache/huggingface/modules/model.py",
    ".cache/go-build/00/tool-d",
    ".cache/yarn/berry/cache/tool.zip",
    ".gradle/wrapper/dists/gradle/bin/gradle",
    ".gradle/caches/modules/tool.jar",
    ".m2/repository/tool.jar",
    ".m2/wrapper/dists/mvn",
    ".cargo/registry/src/index/crate/build.rs",
    ".cargo/git/db/repository/config",
    ".local/share/pnpm/store/v3/tool",
    ".nuget/packages/tool/tool.targets",
    ".ccache/0/object",
    ".yarn/berry/index",
    "go/pkg/mod/module/main.go",
];

fn user_caches() -> String {
    let folder =
        |planted: &str| planted.rsplit_once('/').map(|(folder, _)| format!("user/{folder}")).unwrap();
    let folders: Vec<String> = PLANTED.iter().map(|planted| folder(planted)).collect();
    let lines = folders.iter().map(|folder| format!("mkdir -p {folder}; echo warm > {folder}/warm\n"));
    lines.collect()
}

/// P3
#[test]
fn nothing_planted_in_a_cache_reaches_the_user() {
    let workplace = Workplace::prepared(SandboxMode::On, "work", &user_caches());
    let everything = PLANTED.map(|planted| format!("~/{planted}")).join(" ");

    let output = workplace
        .run(&format!("for file in {everything}; do echo planted > $file || echo refused $file; done"));
    let later = workplace.run(&format!("cat {everything} | sort | uniq -c"));

    assert_eq!(output, "");
    assert_eq!(
        later.trim(),
        format!("{} planted", PLANTED.len()),
        "the next command sees what this one wrote"
    );
    for planted in PLANTED {
        assert!(!workplace.root.join("user").join(planted).exists(), "{planted}");
    }
}

/// P3
#[test]
fn what_the_user_has_in_a_cache_is_there_and_stays_as_it_is() {
    let workplace = Workplace::prepared(SandboxMode::On, "work", &user_caches());
    let warm = "~/.npm/_cacache/warm";

    let first = workplace.run(&format!("cat {warm}; echo changed > {warm}; cat {warm}; rm -r ~/.cache/uv; mv ~/.cache/pip ~/.cache/moved && echo moved"));
    let second = workplace.run(&format!(
        "cat {warm}; ls -d ~/.cache/uv ~/.cache/pip 2>/dev/null; cat ~/.cache/moved/wheels/warm"
    ));

    assert_eq!((first.as_str(), second.as_str()), ("warm\nchanged\nmoved\n", "changed\nwarm\n"));
    let text = |name: &str| fs::read_to_string(workplace.root.join("user").join(name)).unwrap();
    assert_eq!(text(".npm/_cacache/warm"), "warm\n");
    assert_eq!(text(".cache/uv/archive-v0/warm"), "warm\n");
    assert_eq!(text(".cache/pip/wheels/warm"), "warm\n");
}

/// P3: what was mounted leaves nothing but the session's changes.
#[test]
fn nothing_is_left_of_a_layer_but_what_was_changed() {
    let workplace = Workplace::prepared(SandboxMode::On, "work", &user_caches());

    workplace.run("echo 1 > ~/.npm/file");
    workplace.run("echo 2 > ~/.npm/file");

    let caches = workplace.session_folder().join("caches/home");
    assert_eq!(fs::read_to_string(caches.join("changes/.npm/file")).unwrap(), "2\n");
    let since = std::time::Instant::now();
    // A keeper says that it has ended before it cleans up.
    while fs::read_dir(caches.join("scratch")).unwrap().count() > 0 {
        assert!(since.elapsed() < std::time::Duration::from_secs(60));
        std::thread::yield_now();
    }
}

/// P3: a cache that a variable names is one like any other, also outside of the user's folder.
#[test]
fn a_cache_elsewhere_has_a_layer_too() {
    let workplace = Workplace::prepared(
        SandboxMode::On,
        "work",
        "mkdir -p user/caches/pip; echo warm > user/caches/pip/warm",
    );

    let output =
        workplace.run("cat $PIP_CACHE_DIR/warm && echo 1 > $XDG_CACHE_HOME/file && cat $XDG_CACHE_HOME/file");

    assert_eq!(output, "warm\n1\n");
    assert!(!workplace.root.join("user/caches/file").exists());
}
