use proptest::prelude::*;

use super::*;

/// P3
#[test]
fn a_configuration_is_read_as_git_reads_it() {
    let text = "\u{feff}# a comment\n[core] bare = false ; not\n\thooksPath = \"my hooks\" # here\n\tEditor = vim \\\n  -f\n\
                [includeIf \"gitdir:~/Work/\"]\n\tpath = ../shared\n[remote \"Origin\"]\nurl = \"a\\\"b\\\\c;d\"\n\
                [extensions]\nworktreeConfig\n[a.B \"c\"]x=  y z  \n";

    let config = GitConfig::parse(text);

    assert_eq!(config.last("core.bare"), Some("false"));
    assert_eq!(config.last("core.hookspath"), Some("my hooks"));
    assert_eq!(config.last("core.editor"), Some("vim   -f"));
    assert_eq!(config.last("remote.Origin.url"), Some("a\"b\\c;d"));
    assert_eq!(config.last("a.b.c.x"), Some("y z"));
    assert!(config.is_true("extensions.worktreeconfig"));
    assert_eq!(config.includes().collect::<Vec<_>>(), ["../shared"]);
    assert_eq!(config.last("core.missing"), None);
}

/// P3
#[test]
fn variables_that_run_something_are_told_from_others() {
    let runs_program = [
        "[core]\nfsmonitor = ./x",
        "[core]\nsshCommand = x",
        "[core]\nhooksPath = x",
        "[filter \"f\"]\nclean = x",
        "[diff \"d\"]\ntextconv = x",
        "[alias]\nst = !x",
        "[credential]\nhelper = x",
        "[gpg]\nprogram = x",
        "[includeIf \"onbranch:x\"]\npath = x",
        "[submodule \"s\"]\nupdate = !x",
        "[pager]\nlog = x",
    ];
    let runs_nothing = [
        "[core]\nfsmonitor = true\nbare = false\nfilemode = true\nlogallrefupdates = true",
        "[remote \"origin\"]\nurl = x\nfetch = +refs/heads/*:refs/remotes/origin/*",
        "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main",
        "[alias]\nst = status",
        "[submodule \"s\"]\nactive = true\nurl = x\nupdate = rebase",
        "[user]\nname = x",
    ];

    for text in runs_program {
        assert_eq!(GitConfig::parse(text).programs().len(), 1, "{text}");
    }
    for text in runs_nothing {
        assert_eq!(GitConfig::parse(text).programs(), Vec::<&str>::new(), "{text}");
    }
}

proptest! {
    /// P3
    #[test]
    fn any_text_is_read_to_its_end(text in "[a-zA-Z=\\[\\]\"\\\\#;\n\r\t .äß]{0,200}") {
        GitConfig::parse(&text);
    }
}
