//! Programs that must work in a sandbox as they do without one.

use std::fs;
use std::path::Path;

use longhaul_tools::SandboxMode;

use crate::workplace::Workplace;

/// All that pip asks of a package, so that nothing else has to be installed for it.
const BACKEND: &str = r#"
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = 'hello-1.0-py3-none-any.whl'
    with zipfile.ZipFile(folder + '/' + name, 'w') as wheel:
        wheel.write('hello.py')
        wheel.writestr('hello-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n')
        wheel.writestr('hello-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr('hello-1.0.dist-info/RECORD', '')
    return name
"#;

fn workplace() -> Workplace {
    Workplace::new(SandboxMode::On)
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

#[track_caller]
fn works(workplace: &Workplace, command: &str, says: &str) {
    let result = workplace.result(&format!("set -e\n{command}"));

    assert_eq!(result["exit_code"], 0, "{command}: {result}");
    assert!(result["output"].as_str().unwrap_or_default().contains(says), "{command}: {result}");
}

/// P3
#[test]
fn cargo_builds_a_package() {
    let workplace = workplace();
    let manifest = "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    write(
        &workplace.work,
        &[("hello/Cargo.toml", manifest), ("hello/src/main.rs", "fn main() { println!(\"built\"); }")],
    );

    works(&workplace, "cd hello && cargo build --offline && ./target/debug/hello", "built");
}

/// P3
#[test]
fn npm_installs_a_package() {
    let workplace = workplace();
    write(
        &workplace.work,
        &[
            ("package/package.json", r#"{"name": "hello", "version": "1.0.0", "main": "index.js"}"#),
            ("package/index.js", "module.exports = 'installed';"),
            ("app/package.json", r#"{"name": "app", "version": "1.0.0"}"#),
        ],
    );

    works(
        &workplace,
        "cd app && npm install --offline --no-audit --no-fund ../package && node -e \"console.log(require('hello'))\"",
        "installed",
    );
}

/// P3
#[test]
fn pip_installs_a_package() {
    let workplace = workplace();
    write(
        &workplace.work,
        &[
            (
                "package/pyproject.toml",
                "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
            ),
            ("package/backend.py", BACKEND),
            ("package/hello.py", "said = 'installed'\n"),
        ],
    );

    works(
        &workplace,
        "python3 -m venv env && env/bin/pip install --quiet --no-index --no-build-isolation ./package && \
         env/bin/python -c 'import hello; print(hello.said)'",
        "installed",
    );
}

/// P3
#[test]
fn go_builds_a_program() {
    let workplace = workplace();
    let program = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built\") }\n";
    write(&workplace.work, &[("hello/go.mod", "module hello\n\ngo 1.19\n"), ("hello/main.go", program)]);

    works(&workplace, "cd hello && go build && ./hello", "built");
}

/// P3: its database and the environments of its hooks lie in the user's cache.
#[test]
fn pre_commit_runs_hooks() {
    let workplace = workplace();
    let hooks = "repos:\n- repo: local\n  hooks:\n  - {id: hello, name: hello, entry: echo checked, language: system, verbose: true}\n";
    write(&workplace.work, &[("one/.pre-commit-config.yaml", hooks)]);

    works(&workplace, "cd one && git init -q && git add . && pre-commit run --all-files", "checked");
}

/// P3
#[test]
fn git_commits_and_clones() {
    let workplace = workplace();

    works(
        &workplace,
        "git init -q one && cd one && echo text > file && git add file && \
         git -c user.name=me -c user.email=me@example.org commit -qm 'Add a file' && cd .. && \
         git clone -q one two && git -C two log --format=%s",
        "Add a file",
    );
}
