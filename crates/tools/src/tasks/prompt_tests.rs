use super::*;

/// K12
#[test]
fn what_asks_for_an_answer_is_told_from_what_is_only_printed() {
    let table = [
        ("Continue? [y/N] ", true),
        ("Do you want to continue? [Y/n]\n", true),
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", true),
        ("Overwrite it (yes/no)? ", true),
        ("Password: ", true),
        ("user@host's password: ", true),
        ("[sudo] password for me: ", true),
        ("Enter passphrase for key '/home/me/.ssh/id': ", true),
        ("Username for 'https://example.com': ", true),
        ("Press any key to continue . . .\n", true),
        ("Press Enter to continue\n", true),
        ("--More--", true),
        ("What is your name?", true),
        ("What is your name? \n", true),
        ("Project name: ", true),
        ("package name (demo):", true),
        (">>> ", true),
        ("> ", true),
        ("mysql> ", true),
        ("(gdb) ", false),
        ("me@host:~$ ", true),
        ("root@host:/# ", true),
        ("", false),
        ("\n", false),
        ("   \n", false),
        ("Compiling demo v0.1.0\n", false),
        ("Compiling demo v0.1.0", false),
        ("warning: the following files were changed:\n", false),
        ("Downloads:\n", false),
        ("[=====>      ] 45%", false),
        ("[=====>", false),
        ("100%", false),
        ("Downloading crates ... 45%\r", false),
        ("a -> b", false),
        ("key => value>", false),
        ("</html>", false),
        ("<p class=\"a\">", false),
        ("costs 5 $", false),
        ("listening on port 8080\n", false),
        ("Listening on http://127.0.0.1:8080/\n", false),
        ("the password was changed\n", false),
        ("password\n", false),
    ];

    for (line, expected) in table {
        assert_eq!(looks_like_a_prompt(line), expected, "{line:?}");
    }
}

/// K12: a question fits on a screen.
#[test]
fn a_line_that_is_very_long_is_no_prompt() {
    assert!(!looks_like_a_prompt(&format!("{}?", "x".repeat(1000))));
}
