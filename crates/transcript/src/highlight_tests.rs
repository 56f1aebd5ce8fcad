use proptest::prelude::*;
use syntect::parsing::Regex;
use syntect::parsing::syntax_definition::Pattern;

use super::*;

/// Each part with the colour that it has: `cyan(1)`.
fn shown(spans: &[Span]) -> String {
    let part = |span: &Span| match (span.style.color, span.style.dim) {
        (Some(colour), _) => format!("{}({})", format!("{colour:?}").to_lowercase(), span.content),
        (None, true) => format!("dim({})", span.content),
        _ => span.content.clone(),
    };
    spans.iter().map(part).collect()
}

#[test]
fn code_has_the_colours_of_what_it_is() {
    let mut rust = Highlighter::new("rust");

    assert_eq!(
        shown(&rust.highlight_line("fn add() -> u8 { 1 } // one")),
        "magenta(fn) blue(add)() -> magenta(u8) { cyan(1) } dim(// one)"
    );
    assert_eq!(shown(&rust.highlight_line("let a = \"b\";")), "magenta(let) a = green(\"b\");");
}

#[test]
fn what_a_line_begins_goes_on_in_the_next() {
    let mut rust = Highlighter::new("rs");

    rust.highlight_line("/* a");

    assert_eq!(shown(&rust.highlight_line("let b */ let")), "dim(let b */) magenta(let)");
}

#[test]
fn usual_names_lead_to_a_language_and_others_are_plain() {
    for name in [
        "rs",
        "rust",
        "Rust",
        "py",
        "python",
        "js",
        "javascript",
        "ts",
        "typescript",
        "tsx",
        "sh",
        "bash",
        "zsh",
        "toml",
        "json",
        "yaml",
        "yml",
        "go",
        "c",
        "cpp",
        "c++",
        "java",
        "kotlin",
        "rb",
        "ruby",
        "sql",
        "html",
        "css",
        "diff",
        "xml",
        "php",
        "lua",
        "makefile",
        "hs",
        "cs",
        "dockerfile",
    ] {
        assert!(find_syntax(name).is_some(), "{name}");
    }
    for name in ["", "text", "no such language", "\u{1b}"] {
        assert!(find_syntax(name).is_none(), "{name}");
        assert_eq!(Highlighter::new(name).highlight_line("let a"), [Span::raw("let a")]);
    }
}

#[test]
fn a_very_long_line_is_plain_and_what_follows_is_not() {
    let mut rust = Highlighter::new("rust");
    let long = "let ".repeat(2_000);

    assert_eq!(rust.highlight_line(&long), [Span::raw(long.clone())]);
    assert_eq!(shown(&rust.highlight_line("let")), "magenta(let)");
}

/// syntect panics where it comes upon an expression that it can't compile.
#[test]
fn every_expression_of_every_language_can_be_compiled() {
    let definitions = syntaxes().clone().into_builder();

    for definition in definitions.syntaxes() {
        for pattern in definition.contexts.values().flat_map(|context| &context.patterns) {
            if let Pattern::Match(found) = pattern {
                let problem = Regex::try_compile(found.regex.regex_str());
                assert!(problem.is_none() || found.has_captures, "{}: {problem:?}", definition.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_letter_is_lost_whatever_the_code(
        lines in prop::collection::vec("[a-z{}()\"'/*#<> é日\u{301}=\\\\$`]{0,30}", 0..6),
        language in prop::sample::select(vec!["rust", "python", "js", "bash", "html", "yaml", "c", "none"]),
    ) {
        let mut highlighter = Highlighter::new(language);

        for line in lines {
            let text: String = highlighter.highlight_line(&line).iter().map(|span| span.content.as_str()).collect();
            prop_assert_eq!(text, line);
        }
    }
}
