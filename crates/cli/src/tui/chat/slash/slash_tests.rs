use super::*;

fn mistake(line: &str) -> String {
    match parse_line(line) {
        SlashInput::Mistake(words) | SlashInput::Unknown { mistake: words, .. } => words,
        entry => panic!("{line} is {entry:?}"),
    }
}

/// S6
#[test]
fn a_command_is_matched_exactly_and_by_its_aliases() {
    let action = |line| match parse_line(line) {
        SlashInput::Command(row, arguments) => (row.action, arguments),
        entry => panic!("{entry:?}"),
    };

    assert_eq!(action("/exit"), (SlashAction::Exit, String::new()));
    assert_eq!(action(" /q \n").0, SlashAction::Exit);
    assert_eq!(action("/model  openai/gpt-5 "), (SlashAction::Model, "openai/gpt-5".to_owned()));
    assert!(mistake("/Exit").contains("unknown command /Exit"));
    assert!(mistake("/exi").contains("did you mean /exit?"));
    assert!(mistake("/etc/passwd").contains("start the line with two slashes"));
}

/// S6
#[test]
fn the_nearest_names_are_offered_and_nothing_that_is_far() {
    assert_eq!(nearest_commands("/satus", &[]), ["/status"]);
    assert_eq!(nearest_commands("/retyr", &[]), ["/retry"]);
    assert_eq!(nearest_commands("/greting", &["greeting"]), ["/greeting"]);
    assert_eq!(nearest_commands("/xyzzy", &["greeting"]), Vec::<&str>::new());
    assert!(mistake("/schedules").contains("it is a command of the shell: longhaul schedules. To send it"));
    assert!(mistake("/xyzzy").contains("/help lists all commands. To send it"));
}

#[test]
fn two_slashes_send_one_and_other_lines_are_for_the_agent() {
    assert_eq!(parse_line("//etc/hosts, please"), SlashInput::Say("/etc/hosts, please".to_owned()));
    assert_eq!(parse_line("  hello  "), SlashInput::Say("hello".to_owned()));
    assert_eq!(parse_line("  "), SlashInput::Nothing);
}

#[test]
fn words_after_a_command_that_takes_none_are_not_dropped_silently() {
    assert_eq!(
        mistake("/retry it"),
        "/retry takes no arguments; to send the line to the agent, start it with two slashes: //retry it"
    );
}

#[test]
fn no_name_leads_to_two_commands() {
    let mut names: Vec<&str> = COMMANDS
        .iter()
        .flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), all);
}

/// S7
#[test]
fn every_command_but_four_has_a_one_shot_form_that_programs_can_read() {
    let program = Arguments::command();
    let without: Vec<&str> =
        COMMANDS.iter().filter(|row| row.one_shot.is_empty()).map(|row| row.name).collect();

    assert_eq!(without, ["/help", "/model", "/clear", "/exit"]);
    for row in COMMANDS.iter().filter(|row| !row.one_shot.is_empty()) {
        let name = row.one_shot.split_whitespace().nth(1).unwrap();
        let command = program.find_subcommand(name).unwrap_or_else(|| panic!("no longhaul {name}"));
        let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        assert!(has_json, "longhaul {name} has no --json");
    }
}

/// The page that people read, made from the table and from the command line. `UPDATE_DOCS=1` writes it.
#[test]
fn docs_commands_md_is_as_the_tables_say() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = page();

    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }

    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/commands.md is stale: run the tests with UPDATE_DOCS=1");
}

fn page() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         This page is made from the tables of the program; a test holds it up to date.\n\n\
         ## In the conversation\n\n\
         `longhaul` without a command talks to the agent: a line is something to say, and one that begins with a slash is a\n\
         command, matched exactly. An unknown one is answered with the nearest names and never sent to the model; `//TEXT` sends\n\
         `/TEXT`. While a turn runs, a line joins it at its next step.\n\n\
         | command | also | while a turn runs | what it does | on the command line |\n| --- | --- | --- | --- | --- |\n",
    );
    for row in &COMMANDS {
        let usage = if row.arguments.is_empty() {
            format!("`{}`", row.name)
        } else {
            format!("`{} {}`", row.name, row.arguments.replace('|', "\\|"))
        };
        let aliases: Vec<String> = row.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let when = match row.when {
            Availability::Always => "yes",
            Availability::BetweenTurns => "no",
        };
        let one_shot = match row.one_shot {
            "" => String::new(),
            form => format!("`{}`", form.replace('|', "\\|")),
        };
        let _ = writeln!(page, "| {usage} | {} | {when} | {} | {one_shot} |", aliases.join(" "), row.help);
    }
    page.push_str(
        "\n## On the command line\n\n\
         `longhaul COMMAND --help` explains each with its flags.\n\n| command | what it does |\n| --- | --- |\n",
    );
    for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| `longhaul {}` | {} |", command.get_name(), about.trim_end_matches('.'));
    }
    page
}

#[test]
fn the_rows_of_the_help_stay_below_their_column_in_a_narrow_terminal() {
    let mut renderer = longhaul_transcript::TerminalRenderer::new(80, longhaul_transcript::Verbosity::Normal);
    renderer.push_output(&help());

    let rows: Vec<String> = renderer.take_lines().iter().map(ToString::to_string).collect();
    let is_start = |row: &str| !row.starts_with("   ");
    let continued = rows.iter().filter(|row| !is_start(row));

    for row in continued {
        let column = row.chars().take_while(|character| *character == ' ').count();
        assert!(column == 20 || column == 30, "{column}: {row:?} in {rows:#?}");
    }
    let texts = rows.iter().filter(|row| is_start(row) && row.starts_with("  "));
    assert!(
        texts.clone().all(|row| row.trim_start().starts_with(['/', '@', '!']) || row.starts_with("  ")),
        "{rows:#?}"
    );
    // The keys of a question are the only entry that begins with a small letter; a text would be a wrapped one.
    let is_text = |row: &&String| row.starts_with("  ") && row[2..3].chars().all(char::is_lowercase);
    let texts: Vec<&String> = rows.iter().filter(is_text).collect();
    assert!(texts.iter().all(|row| row.starts_with("  y, a, p, n ")), "{texts:#?}");
}
