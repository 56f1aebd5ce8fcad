//! Programs that start others and take their commands in a way of their own: `ssh`, `flock`, `parallel`.

use super::wrappers::{Inside, NONE, Options, command_at, joined, options_end, own, text_of};
use super::{Kind, Unseen, Word};

const WATCH: Options = Options { short: "nq", long: &["--interval", "--equexit"], ..NONE };
const FLOCK: Options =
    Options { short: "wE", long: &["--timeout", "--wait", "--conflict-exit-code"], ..NONE };
const STRACE: Options = Options {
    short: "abeEIoOpPsSuUX",
    long: &["--attach", "--env", "--output", "--trace", "--trace-path", "--user", "--string-limit"],
    ..NONE
};
const LTRACE: Options =
    Options { short: "aADeFlnopsuwx", long: &["--align", "--library", "--output", "--config"], ..NONE };
const SETPRIV: Options = Options {
    short: "",
    long: &[
        "--ruid",
        "--euid",
        "--reuid",
        "--rgid",
        "--egid",
        "--regid",
        "--groups",
        "--inh-caps",
        "--ambient-caps",
        "--bounding-set",
        "--securebits",
        "--pdeathsig",
        "--selinux-label",
        "--apparmor-profile",
    ],
    ..NONE
};
const UNSHARE: Options = Options {
    short: "RwSGl",
    long: &[
        "--root",
        "--wd",
        "--setuid",
        "--setgid",
        "--propagation",
        "--setgroups",
        "--map-user",
        "--map-group",
        "--monotonic",
        "--boottime",
    ],
    ..NONE
};
const PARALLEL: Options = Options {
    short: "aCDdEIiJjLlMNnPSs",
    long: &[
        "--jobs",
        "--arg-file",
        "--colsep",
        "--delimiter",
        "--max-args",
        "--max-procs",
        "--joblog",
        "--results",
        "--delay",
        "--timeout",
        "--retries",
        "--sshlogin",
        "--workdir",
        "--tmpdir",
        "--halt",
        "--load",
        "--memfree",
        "--block",
        "--tagstring",
        "--env",
    ],
    ..NONE
};
const SSH: Options = Options { short: "BbcDEeFIiJLlmOoPpQRSWw", ..NONE };
/// What `parallel` puts its arguments in place of.
const PLACES: [&str; 9] = ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{2}"];

/// What one of these programs runs, if it is one.
pub(super) fn started(program: &str, words: &[Word]) -> Option<Inside> {
    let arguments = &words[1..];
    Some(match program {
        "strace" => own(words, &STRACE),
        "ltrace" => own(words, &LTRACE),
        "setpriv" => own(words, &SETPRIV),
        "unshare" => own(words, &UNSHARE),
        // Their only option with a value that may stand alone names a process, and then there is no command.
        "taskset" => own(words, &Options { arguments: 1, ..NONE }),
        "chrt" => own(words, &Options { short: "TPD", arguments: 1, ..NONE }),
        "prlimit" => own(words, &Options { short: "po", long: &["--pid", "--output"], ..NONE }),
        "watch" => watch(words),
        "flock" => flock(words),
        "script" => match after_c(arguments, "BEIOTmo") {
            Some(text) => text,
            None => behind_dashes(arguments).unwrap_or(Inside::Input(program.to_owned())),
        },
        "sg" => after_c(arguments, "").or_else(|| arguments.get(1).map(one_text)).unwrap_or(Inside::Nothing),
        "chroot" => own(words, &Options { arguments: 1, ..NONE }),
        "runuser" => match after_c(arguments, "gGsuw") {
            Some(text) => text,
            None => own(words, &Options { short: "gGsuw", long: &["--user", "--group"], ..NONE }),
        },
        "pkexec" => own(words, &Options { long: &["--user"], ..NONE }),
        "systemd-run" => {
            own(words, &Options { short: "pMuEH", long: &["--property", "--unit", "--slice"], ..NONE })
        }
        "nsenter" => {
            own(words, &Options { short: "tSG", long: &["--target", "--setuid", "--setgid"], ..NONE })
        }
        "npm" | "pnpm" | "yarn" => {
            let end = options_end(words, &NONE);
            let runs = matches!(words.get(end).map(|word| word.text.as_str()), Some("exec" | "x" | "dlx"));
            after_c(arguments, "pw").filter(|_| runs).unwrap_or(Inside::Nothing)
        }
        "npx" => {
            // What follows the name of a package is for that one.
            let end = options_end(words, &Options { short: "pw", long: &["--package"], ..NONE });
            after_c(&words[1..words.len().min(end + 1)], "pw").unwrap_or(Inside::Nothing)
        }
        "parallel" => parallel(words),
        "ssh" => ssh(words),
        "mapfile" | "readarray" if has_option(arguments, 'C') => unseen(words),
        "compgen" | "complete" if ['C', 'F', 'W'].iter().any(|letter| has_option(arguments, *letter)) => {
            unseen(words)
        }
        "hash" if has_option(arguments, 'p') => unseen(words),
        "bind" if has_option(arguments, 'x') => unseen(words),
        "enable" if has_option(arguments, 'f') => unseen(words),
        "fc" if !has_option(arguments, 'l') => unseen(words),
        _ => return None,
    })
}

/// The text behind `-c`, also as one of several letters, or behind `--command` or `--call`.
pub(super) fn after_c(arguments: &[Word], with_value: &str) -> Option<Inside> {
    for (at, word) in arguments.iter().enumerate() {
        let next = || Some(arguments.get(at + 1).map_or(Inside::Nothing, one_text));
        let text = word.text.as_str();
        let Some(option) = text.strip_prefix('-') else { continue };
        match option {
            "-" => return None,
            "-command" | "-call" => return next(),
            long if long.starts_with('-') => {
                if let Some(("--command" | "--call", text)) = text.split_once('=') {
                    return Some(one_text(&Word { text: text.to_owned(), kind: word.kind }));
                }
            }
            short => match short.split_once('c') {
                Some((before, _)) if before.contains(|letter| with_value.contains(letter)) => {}
                Some((_, "")) => return next(),
                Some((_, text)) => return Some(one_text(&Word { text: text.to_owned(), kind: word.kind })),
                None => {}
            },
        }
    }
    None
}

/// It runs its words as a text, unless it is told not to.
fn watch(words: &[Word]) -> Inside {
    let at = options_end(words, &WATCH);
    match &words[at..] {
        [] => Inside::Nothing,
        command if has_option(&words[1..at], 'x') => Inside::Own(vec![command.to_vec()]),
        command => text_of(command),
    }
}

/// A file, and then a command or `-c` and a text. A number alone is a descriptor.
fn flock(words: &[Word]) -> Inside {
    match &words[(options_end(words, &FLOCK) + 1).min(words.len())..] {
        [] => Inside::Nothing,
        [option, text, ..] if matches!(option.text.as_str(), "-c" | "--command") => one_text(text),
        command => Inside::Own(vec![command.to_vec()]),
    }
}

/// Its words are a text in which arguments are put that nobody can see. Without any, the arguments are what is run.
fn parallel(words: &[Word]) -> Inside {
    let at = command_at(words, &PARALLEL);
    let is_source = |word: &Word| word.text.starts_with(":::");
    let end = words[at..].iter().position(is_source).map_or(words.len(), |end| at + end);
    let command = &words[at..end];
    if command.is_empty() {
        return match end < words.len() {
            true => Inside::Unseen(Unseen::Text(joined(&words[end..]))),
            false => Inside::Input(words[0].text.clone()),
        };
    }
    if command.iter().any(|word| word.kind >= Kind::Unknown) {
        return Inside::Unseen(Unseen::Text(joined(command)));
    }
    // Written as a shell would have to write it, whatever the argument is.
    let argument = "\"$argument\"";
    let text = joined(command);
    let filled = PLACES.iter().fold(text.clone(), |text, place| text.replace(place, argument));
    Inside::Text(if filled == text { format!("{text} {argument}") } else { filled })
}

/// The words behind the host are run there, as a text. Without any it is a shell, unless it only connects.
fn ssh(words: &[Word]) -> Inside {
    let at = options_end(words, &SSH);
    // Options may also stand behind the host.
    let behind = words.len().min(at + 1);
    let again = behind + options_end(&words[behind.saturating_sub(1)..], &SSH).saturating_sub(1);
    let options = words[1..at].iter().chain(&words[behind..again.max(behind)]).cloned().collect::<Vec<_>>();
    match &words[again.max(behind).min(words.len())..] {
        [] if at == words.len() => Inside::Nothing,
        [] if "NOQVGWf".chars().any(|letter| has_option(&options, letter)) => Inside::Nothing,
        [] => Inside::Input(words[0].text.clone()),
        command => text_of(command),
    }
}

/// The words behind `--`.
fn behind_dashes(arguments: &[Word]) -> Option<Inside> {
    let at = arguments.iter().position(|word| word.text == "--")?;
    let command = arguments.get(at + 1..).filter(|command| !command.is_empty())?;
    Some(Inside::Own(vec![command.to_vec()]))
}

fn one_text(word: &Word) -> Inside {
    text_of(std::slice::from_ref(word))
}

fn has_option(arguments: &[Word], letter: char) -> bool {
    let is_short = |word: &&Word| word.text.starts_with('-') && !word.text.starts_with("--");
    arguments.iter().filter(is_short).any(|word| word.text.contains(letter))
}

fn unseen(words: &[Word]) -> Inside {
    Inside::Unseen(Unseen::Code(joined(words)))
}
