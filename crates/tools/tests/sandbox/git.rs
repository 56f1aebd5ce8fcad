//! Repositories: no command makes the user's git run anything, and git works all the same.

use std::time::{Duration, Instant};

use longhaul_tools::SandboxMode;

use crate::workplace::{Workplace, give_up_rights_over_folders, user_command};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A repository with everything that repositories have: a module, a linked work tree, another repository in it and a bare one.
const SETUP: &str = r#"
git config --global user.name me; git config --global user.email me@example.org
git config --global protocol.file.allow always; git config --global init.defaultBranch main
git config --global advice.detachedHead false
git init -q module-source; git -C module-source commit -q --allow-empty -m 'Begin the module'
git init -q work; cd work; mkdir folder; echo text > folder/file; git add .; git commit -qm Begin
git submodule -q add ../module-source module; git commit -qm 'Add a module'
git worktree add -q linked -b linked-branch
git init -q deep/nested; git -C deep/nested commit -q --allow-empty -m Begin
git init -q --bare bare
echo linked > .gitignore; echo deep >> .gitignore; echo bare >> .gitignore; echo 'evil*' >> .gitignore
git add .gitignore; git commit -qm 'Ignore the rest'
printf '#!/bin/sh\necho > %s\n' "$PWD/../reached" > ../evil; chmod +x ../evil; cp ../evil evil
"#;

/// In `strict` a command doesn't read the user's own configuration.
const IDENTITY: &str = "export GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.org GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=me@example.org";

/// What the user does next, wherever there is a repository.
const USER: &str = r#"
for folder in work work/folder work/module work/linked work/deep/nested; do
  for act in status 'diff HEAD' 'commit -q --allow-empty -m next' 'checkout -q -b next' 'log -1'; do git -C $folder $act; done
done
git -C work/src tag next; git -C work/bare log --all; git -C work push -q bare HEAD:refs/heads/pushed
"#;

/// So that the workplace can be removed.
const OPEN_ALL: &str = "chmod -R u+rwx work";

struct Attempt {
    name: &'static str,
    /// What the user has set up besides.
    before: &'static str,
    command: &'static str,
}

const fn attempt(name: &'static str, command: &'static str) -> Attempt {
    Attempt { name, before: "", command }
}

const fn after(name: &'static str, before: &'static str, command: &'static str) -> Attempt {
    Attempt { name, before, command }
}

const ATTEMPTS: &[Attempt] = &[
    attempt("git config", "git config core.fsmonitor $PWD/evil"),
    attempt("the configuration", "printf '[core]\\nfsmonitor = %s\\n' $PWD/evil >> .git/config"),
    attempt(
        "another configuration in its place",
        "cp .git/config c; git config -f c core.fsmonitor $PWD/evil; mv -f c .git/config",
    ),
    attempt(
        "removing the configuration first",
        "cp .git/config c; git config -f c core.fsmonitor $PWD/evil; rm -f .git/config; cp c .git/config",
    ),
    attempt("a hook", "cp evil .git/hooks/pre-commit"),
    attempt(
        "other hooks in their place",
        "mv .git/hooks old; mkdir .git/hooks; cp evil .git/hooks/pre-commit",
    ),
    after(
        "hooks where there were none",
        "rm -r work/.git/hooks",
        "mkdir .git/hooks; cp evil .git/hooks/pre-commit",
    ),
    attempt("another .git in its place", "mv .git old; cp -r old .git; git config core.fsmonitor $PWD/evil"),
    attempt(
        "a file in place of .git",
        "mv .git old; cp -r old evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; echo gitdir: $PWD/evil-git > .git",
    ),
    attempt(
        "another common folder",
        "cp -r .git evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; echo $PWD/evil-git > c; mv -f c .git/commondir",
    ),
    attempt(
        "another common folder, written in place",
        "cp -r .git evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; echo $PWD/evil-git > .git/commondir",
    ),
    attempt(
        "another common folder, after the command",
        "cp -r .git evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; \
         setsid sh -c 'sleep 0.5; rm -f .git/commondir; echo $PWD/evil-git > .git/commondir; touch tried' > /dev/null 2>&1 &",
    ),
    attempt(
        "another common folder, after the command and another one",
        "cp -r .git evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; \
         setsid sh -c 'while ! test -e go; do sleep 0.05; done; sleep 0.5; rm -f .git/commondir; \
         echo $PWD/evil-git > .git/commondir; touch tried' > /dev/null 2>&1 & ;; touch go",
    ),
    after(
        "configuration of the work tree",
        "git -C work config extensions.worktreeConfig true",
        "git config -f .git/config.worktree core.fsmonitor $PWD/evil",
    ),
    after(
        "configuration of a linked work tree",
        "git -C work config extensions.worktreeConfig true",
        "git config -f .git/worktrees/linked/config.worktree core.fsmonitor $PWD/evil",
    ),
    attempt("the configuration of a module", "git -C module config core.fsmonitor $PWD/evil"),
    attempt("a hook of a module", "cp evil .git/modules/module/hooks/pre-commit"),
    attempt(
        "the file of a module",
        "cp -r .git/modules/module evil-git; git config -f evil-git/config core.worktree $PWD/module; git config -f evil-git/config core.fsmonitor $PWD/evil; rm module/.git; echo gitdir: $PWD/evil-git > module/.git",
    ),
    attempt(
        "another common folder of a module",
        "cp -r .git/modules/module evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; echo $PWD/evil-git > .git/modules/module/commondir",
    ),
    attempt(
        "all modules",
        "mv .git/modules old; cp -r old .git/modules; git config -f .git/modules/module/config core.fsmonitor $PWD/evil",
    ),
    attempt(
        "another common folder of a linked work tree",
        "cp -r .git evil-git; git config -f evil-git/config core.fsmonitor $PWD/evil; echo $PWD/evil-git > .git/worktrees/linked/commondir",
    ),
    attempt(
        "the file of a linked work tree",
        "git init -q evil-tree; git -C evil-tree config core.fsmonitor $PWD/evil; git -C evil-tree config core.worktree $PWD/linked; rm linked/.git; echo gitdir: $PWD/evil-tree/.git > linked/.git",
    ),
    attempt("a repository in the repository", "git -C deep/nested config core.fsmonitor $PWD/evil"),
    attempt(
        "moving a repository away",
        "mv deep old; cp -r old deep; git -C deep/nested config core.fsmonitor $PWD/evil",
    ),
    attempt("a hook of a bare repository", "cp evil bare/hooks/pre-receive"),
    after(
        "a file that is included",
        "git -C work config include.path ../shared; touch work/shared",
        "git config -f shared core.fsmonitor $PWD/evil",
    ),
    after(
        "a file that is included and missing",
        "git -C work config include.path ../shared",
        "git config -f shared core.fsmonitor $PWD/evil",
    ),
    after(
        "a file that is included through many others",
        "cd work; for at in 0 1 2 3 4 5 6 7; do git config -f inc$at include.path inc$((at + 1)); done; touch inc8; \
         git config include.path ../inc0",
        "git config -f inc8 core.fsmonitor $PWD/evil",
    ),
    after(
        "a file that is included by a link to another folder",
        "cd work; mkdir conf; git config -f conf/real include.path more; ln -s conf/real inc; touch more; \
         git config include.path ../inc",
        "git config -f more core.fsmonitor $PWD/evil",
    ),
    after(
        "a folder for hooks of a bare repository",
        "cd work; mkdir tools; git -C bare config core.hooksPath $PWD/tools",
        "cp evil tools/pre-receive",
    ),
    after(
        "a folder for hooks",
        "mkdir work/.githooks; git -C work config core.hooksPath .githooks",
        "cp evil .githooks/pre-commit",
    ),
    after(
        "a folder for hooks in a linked work tree",
        "mkdir work/linked/.githooks; git -C work config core.hooksPath .githooks",
        "cp evil linked/.githooks/pre-commit",
    ),
    after(
        "a folder for hooks that a linked work tree names",
        "mkdir work/hk; git -C work config extensions.worktreeConfig true; git -C work/linked config --worktree core.hooksPath ../hk",
        "cp evil hk/pre-commit",
    ),
    after(
        "a folder for hooks that is missing",
        "git -C work config core.hooksPath tools/hooks",
        "mkdir -p tools/hooks; cp evil tools/hooks/pre-commit",
    ),
    after(
        "a folder for hooks of all repositories",
        "git config --global core.hooksPath .githooks",
        "mkdir -p .githooks; cp evil .githooks/pre-commit",
    ),
    after(
        "a hook that is a link",
        "touch work/hook; chmod +x work/hook; ln -s ../../hook work/.git/hooks/pre-commit",
        "cp evil hook",
    ),
];

/// The first command runs in one session, the second in the next.
const OVER_TWO_SESSIONS: &[Attempt] = &[
    attempt(
        "names of a bare repository beside a repository",
        "cd deep/nested; mkdir objects refs; touch HEAD; echo > config ;; \
         printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = %s\\n' $PWD/evil > deep/nested/.git/config",
    ),
    attempt(
        "names of a bare repository above a repository",
        "cd deep; mkdir objects refs; touch HEAD; echo > config ;; \
         printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = %s\\n' $PWD/evil > deep/nested/.git/config",
    ),
    attempt(
        "other spellings beside a repository",
        "cd deep/nested; mkdir .GIT .Git .gIt .giT .GIt .GiT .gIT; touch .GIT/config ;; \
         printf '[core]\\nrepositoryformatversion = 0\\nfsmonitor = %s\\n' $PWD/evil > deep/nested/.git/config",
    ),
    attempt(
        "a repository in a folder that can't be listed",
        "chmod 311 deep/nested ;; chmod 755 deep/nested; git -C deep/nested config core.fsmonitor $PWD/evil",
    ),
    attempt(
        "a repository below a folder that can't be listed",
        "chmod 311 deep ;; chmod 755 deep; git -C deep/nested config core.fsmonitor $PWD/evil",
    ),
    attempt(
        "a repository below a folder that can't be searched",
        "chmod 644 deep ;; chmod 755 deep; git -C deep/nested config core.fsmonitor $PWD/evil",
    ),
    attempt(
        "a repository split by commondir",
        "mkdir src; cd src; echo 'ref: refs/heads/main' > HEAD; echo ../c > commondir; cp -r ../.git ../c; rm ../c/HEAD ;; \
         cp evil c/hooks/reference-transaction",
    ),
    attempt(
        "modules that can't be listed",
        "chmod 311 .git/modules ;; chmod 755 .git/modules; git -C module config core.fsmonitor $PWD/evil",
    ),
];

fn workplace(mode: SandboxMode, work: &str, before: &str) -> Workplace {
    Workplace::prepared(mode, work, &format!("{SETUP}\ncd ..\n{before}"))
}

fn as_user(workplace: &Workplace, commands: &str) -> String {
    let output =
        user_command(&workplace.root).arg("-c").arg(commands).current_dir(&workplace.root).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeeds(attempt: &Attempt, mode: SandboxMode) -> (bool, String) {
    let workplace = workplace(mode, "work", attempt.before);
    let mut output: String = attempt.command.split(" ;; ").map(|command| workplace.run(command)).collect();
    let since = Instant::now();
    while attempt.command.contains("tried")
        && !workplace.work.join("tried").exists()
        && since.elapsed() < TEST_TIMEOUT
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    output += &as_user(&workplace, USER);
    (workplace.root.join("reached").exists(), output)
}

/// P3
#[test]
fn no_command_makes_the_users_git_run_anything() {
    let mut wrong = Vec::new();
    for attempt in ATTEMPTS {
        let (without, output) = succeeds(attempt, SandboxMode::Off);
        if !without {
            wrong.push(format!(
                "{} proves nothing, because it fails without a sandbox: {output}",
                attempt.name
            ));
        }
        let (within, output) = succeeds(attempt, SandboxMode::On);
        if within {
            wrong.push(format!("{} succeeds: {output}", attempt.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// P3: what one session leaves in the work folder takes no guard away in the next.
#[test]
fn no_command_of_a_later_session_makes_the_users_git_run_anything() {
    give_up_rights_over_folders();
    let mut wrong = Vec::new();
    for attempt in OVER_TWO_SESSIONS {
        let tried = |mode| {
            let mut workplace = workplace(mode, "work", attempt.before);
            let (first, second) = attempt.command.split_once(" ;; ").unwrap();
            let mut output = workplace.run(first);
            workplace.begin_session();
            output += &workplace.run(second);
            output += &as_user(&workplace, USER);
            as_user(&workplace, OPEN_ALL);
            (workplace.root.join("reached").exists(), output)
        };
        match (tried(SandboxMode::Off), tried(SandboxMode::On)) {
            ((false, output), _) => wrong.push(format!("{} proves nothing: {output}", attempt.name)),
            (_, (true, output)) => wrong.push(format!("{} succeeds: {output}", attempt.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// P3
#[test]
fn a_new_repository_below_the_names_of_a_bare_one_is_reported() {
    let workplace = workplace(SandboxMode::On, "work", "");

    workplace.run("mkdir -p odd/objects odd/refs odd/sub; touch odd/HEAD; git init -q odd/sub");

    let news = workplace.git_news();
    assert!(news.contains("odd/sub/.git is a new repository"), "{news}");
}

/// P3
#[test]
fn a_new_folder_that_can_not_be_looked_into_is_reported() {
    give_up_rights_over_folders();
    let workplace = workplace(SandboxMode::On, "work", "");

    workplace.run("git init -q unlisted; chmod 311 unlisted; git init -q unsearched; chmod 644 unsearched");

    let news = workplace.git_news();
    as_user(&workplace, OPEN_ALL);
    for name in ["unlisted", "unsearched"] {
        assert!(news.contains(&format!("{name} is new and can't be looked into")), "{name}: {news}");
    }
}

/// P3
#[test]
fn a_new_repository_split_by_commondir_is_reported() {
    let workplace = workplace(SandboxMode::On, "work", "");

    workplace.run(
        "mkdir src; cd src; echo 'ref: refs/heads/main' > HEAD; echo c > commondir; cp -r ../.git c; rm c/HEAD; \
         cp ../evil c/hooks/reference-transaction",
    );

    let news = workplace.git_news();
    let output = as_user(&workplace, "git -C work/src tag next");
    assert!(workplace.root.join("reached").exists(), "git takes it for no repository: {output}");
    assert!(
        news.contains("src is new and looks like a bare repository: git runs programs by its file commondir"),
        "{news}"
    );
}

/// P3: a name may have any bytes, and a spec is JSON.
#[test]
fn a_repository_whose_name_is_no_utf_8_is_guarded_and_stops_no_command() {
    let before = "mkdir work/$'odd\\xff'; git init -q work/$'odd\\xff'";
    let workplace = workplace(SandboxMode::On, "work", before);

    let output = workplace.run(
        "git init -q $'new\\xff'; cd $'odd\\xff'; touch file; git add file; git commit -qm New; git log --format=%s; \
         git config core.fsmonitor $PWD/../evil",
    );
    let news = workplace.git_news();
    let as_user =
        as_user(&workplace, "git -C work/$'odd\\xff' status; git -C work/$'odd\\xff' log --format=%s");

    assert!(output.starts_with("New\n") && output.contains("could not write config file"), "{output}");
    assert!(as_user.ends_with("New\n") && !workplace.root.join("reached").exists(), "{as_user}");
    assert!(news.contains(r"new\xff/.git is a new repository"), "{news}");
}

/// P3: each guard takes mounts at every command.
#[test]
fn a_folder_with_more_repositories_than_are_guarded_is_closed_and_the_user_is_told() {
    let before = "cd work; mkdir many; for at in $(seq 800); do mkdir many/$at; echo gitdir: ../x > many/$at/.git; done";
    let workplace = workplace(SandboxMode::On, "work", before);

    let output =
        workplace.run("touch many/file || touch file; rm -f many/1/.git; test -e many/1/.git && ls file");

    assert!(output.contains("Read-only file system") && output.ends_with("\nfile\n"), "{output}");
    let news = workplace.git_news();
    assert!(news.contains("many holds more repositories than are guarded one by one"), "{news}");
}

/// Links by which git finds what it runs, as the user has set them up, and what a command makes of the first.
const LINKS: &[(&str, &str, &str)] = &[
    (
        "hk",
        "cd work; mkdir -p tools/hooks; ln -s tools/hooks hk; git config core.hooksPath hk",
        "rm hk; mkdir hk; cp evil hk/pre-commit",
    ),
    (
        "tools/hk",
        "cd work; mkdir -p tools/hooks; ln -s hooks tools/hk; git config core.hooksPath tools/hk",
        "mv tools/hk old; mkdir other; cp evil other/pre-commit; ln -s ../other tools/hk",
    ),
    (
        "conf",
        "cd work; mkdir conf.d; ln -s conf.d conf; touch conf/git.inc; git config include.path ../conf/git.inc",
        "rm conf; mkdir conf; git config -f conf/git.inc core.fsmonitor $PWD/evil",
    ),
    (
        "hook",
        "cd work; touch real; chmod +x real; ln -s real hook; ln -s ../../hook .git/hooks/pre-commit",
        "cp evil other; ln -sf other hook",
    ),
    (
        ".git/hooks/pre-commit",
        "cd work; ln -s ../../node_modules/hook .git/hooks/pre-commit",
        "mkdir node_modules; cp evil node_modules/hook",
    ),
];

/// P3: nothing can be mounted over a link, so it is reported when one leads elsewhere than at the first command.
#[test]
fn a_link_on_the_way_to_hooks_or_configuration_is_reported_when_it_leads_elsewhere() {
    for (link, before, command) in LINKS {
        let workplace = workplace(SandboxMode::On, "work", before);

        workplace.run("touch new; git add new; git commit -qm New");
        let at_first = workplace.git_news();
        workplace.run(command);
        let news = workplace.git_news();
        as_user(&workplace, USER);

        assert_eq!(at_first, "", "{link}");
        assert!(news.contains(&format!("{link} led git to hooks or configuration in ")), "{link}: {news}");
        assert!(workplace.root.join("reached").exists(), "{link} is of no use to a command");
    }
}

/// P3
#[test]
fn git_works_in_every_kind_of_work_tree() {
    let commands = "git status --short && echo more > new && git add new && git commit -qm More && git branch other && \
                    echo again >> new && git stash -q && git stash pop -q && git commit -qam Again && git tag v1 && \
                    git checkout -q other && git commit -q --allow-empty -m Side && git rebase -q - && git merge -q --no-edit - && \
                    git fetch -q . && git log --format=%s -2 && git gc -q";

    for work in ["work", "work/folder", "work/linked", "work/module", "work/deep/nested"] {
        for mode in [SandboxMode::On, SandboxMode::Strict] {
            let workplace = workplace(mode, work, "");
            let result = workplace.result(&format!("set -e\n{IDENTITY}\n{commands}"));
            assert_eq!(result["exit_code"], 0, "{work} {mode:?}: {result}");
            assert!(
                result["output"].as_str().unwrap().contains("Side\nAgain\n"),
                "{work} {mode:?}: {result}"
            );
            let fsck = as_user(
                &workplace,
                &format!(
                    "cd {work}; git fsck --no-dangling 2>&1 && git status --short | grep -v '^ M module'"
                ),
            );
            assert_eq!(
                fsck.replace("notice: HEAD points to an unborn branch (main)\n", ""),
                "",
                "{work} {mode:?}"
            );
        }
    }
}

/// P3
#[test]
fn work_trees_modules_and_clones_are_made() {
    let workplace = workplace(SandboxMode::On, "work", "");

    let result = workplace.result(
        "set -e; git worktree add -q another; git -C another commit -q --allow-empty -m There; git -C another log -1 --format=%s; \
         git clone -q . copy; git -C copy remote add here ..; git -C copy fetch -q here; git init -q fresh; \
         git -C fresh config user.name me; git -C module commit -q --allow-empty -m Inside; git commit -qam 'Take the module'; rm -r copy",
    );

    assert_eq!(result["exit_code"], 0, "{result}");
    let after = as_user(
        &workplace,
        "cd work; git log -1 --format=%s; git -C another status --short; git worktree list | wc -l",
    );
    assert_eq!(after, "Take the module\n3\n");
}

/// P3: what git would write to the configuration fails, and says so.
#[test]
fn what_changes_the_configuration_of_the_users_repository_fails() {
    let workplace = workplace(SandboxMode::On, "work", "");
    let commands = [
        "git config a.b c",
        "git remote add o bare",
        "git push -q -u bare HEAD:refs/heads/x",
        "git branch -q --track t main",
    ];
    for command in commands {
        let output = workplace.run(command);
        assert!(output.contains("could not write config file"), "{command}: {output}");
    }

    let pushed = as_user(
        &workplace,
        "git -C work/bare for-each-ref --format='%(refname)'; git -C work config --get-regexp 'a.b|remote.o'",
    );
    assert_eq!(pushed, "refs/heads/x\n");
}

/// P3
#[test]
fn the_users_own_git_works_while_a_command_runs_and_finds_nothing_afterwards() {
    let workplace = workplace(
        SandboxMode::On,
        "work",
        "git -C work status > /dev/null; find work -name commondir -o -name hooks | sort > before",
    );

    let during = "while ! test -e started; do sleep 0.02; done; \
                  git status --short && git commit -q --allow-empty -m Meanwhile && git -C module commit -q --allow-empty -m Meanwhile && \
                  git -C linked status && git fsck 2>&1 && git worktree list && echo fine; touch done";
    let root = workplace.root.clone();
    let user = std::thread::spawn(move || {
        let output =
            user_command(&root).arg("-c").arg(during).current_dir(root.join("work")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    workplace.run("touch started; while ! test -e done; do sleep 0.02; done");

    let user = user.join().unwrap();
    assert!(user.ends_with("fine\n"), "{user}");
    let after =
        as_user(&workplace, "find work -name commondir -o -name hooks | sort | diff before - && echo same");
    assert_eq!(after, "same\n");
}

/// P3: a repository that the scope names may be written.
#[test]
fn a_planted_file_opens_no_other_repository() {
    let planted = "git init -q other; git -C other commit -q --allow-empty -m Secret; rm -rf work/module/.git; \
                   echo \"gitdir: $PWD/other/.git\" > work/module/.git";
    let workplace = workplace(SandboxMode::On, "work/module", planted);

    let output = workplace.run("git log --format=%s; cat $ROOT/other/.git/HEAD");

    assert!(!output.contains("Secret") && !output.contains("ref:"), "{output}");
}
