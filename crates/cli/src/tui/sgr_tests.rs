use super::*;

#[test]
fn without_colours_only_the_weight_of_letters_is_left() {
    let style = Style::new().fg(Color::Red).bg(Color::LightBlue).add_modifier(Modifier::BOLD);
    let written = |colours| {
        let mut out = String::new();
        write_style(&mut out, style, colours);
        out
    };

    assert_eq!(written(Colours::Shown), "\x1b[0;1;31;104m");
    assert_eq!(written(Colours::Hidden), "\x1b[0;1m");
}
