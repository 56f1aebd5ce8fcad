use std::os::unix::ffi::OsStringExt;

use super::*;

/// K17
#[test]
fn keys_and_what_is_named_are_not_in_the_environment_of_commands() {
    let names = [
        "PATH",
        "OPENAI_API_KEY",
        "My_Api_Key",
        "_API_KEY",
        "API_KEY",
        "OPENAI_API_KEY_FILE",
        "LONGHAUL_TOKEN",
        "SECRET",
        "SECRETS",
        "é_API_KEY",
    ];
    let given = names.map(|name| (OsString::from(name), OsString::from("value")));

    let without_secrets = without_secrets(given, &["SECRET".to_owned(), "MISSING".to_owned()]);

    let names: Vec<&str> = without_secrets.keys().map(String::as_str).collect();
    assert_eq!(names, ["API_KEY", "OPENAI_API_KEY_FILE", "PATH", "SECRETS"]);
}

/// K17: what would have to be changed to be passed on is not passed on.
#[test]
fn what_is_not_unicode_is_left_out_of_the_environment() {
    let strange = || OsString::from_vec(vec![b'/', 0xff]);
    let given = [("HOME".into(), strange()), (strange(), "value".into()), ("LANG".into(), "C.UTF-8".into())];

    let without_secrets = without_secrets(given, &[]);

    assert_eq!(without_secrets, BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]));
}
