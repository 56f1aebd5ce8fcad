use proptest::prelude::*;

use super::*;

fn lines<'a>(names: &'a [String], description: &'a str) -> Vec<SkillLine<'a>> {
    names.iter().map(|name| SkillLine { name, description }).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("skill-{number:04}")).collect()
}

/// E5: while all descriptions fit, nothing is cut and nothing is said about it.
#[test]
fn a_few_skills_are_listed_whole_and_by_name() {
    let skills = [
        SkillLine { name: "pdf", description: "Read PDF files.\nUse for forms." },
        SkillLine { name: "deploy", description: "Deploy [Skills] it." },
    ];

    let list = render_skill_list(&skills, SkillListRoom { usual: 2_000, names: 4_000 });

    let listed: Vec<&str> = list.text.lines().skip(2).collect();
    assert_eq!(listed, ["- deploy: Deploy [Skills?] it.", "- pdf: Read PDF files. Use for forms."]);
    assert_eq!((list.shortened, list.without_description, list.left_out), (0, 0, 0));
    assert_eq!(render_skill_list(&[], SkillListRoom { usual: 2_000, names: 4_000 }), SkillList::default());
}

/// E5: 1,262 descriptions don't hide a single name, and the list says how many descriptions it leaves out.
#[test]
fn every_name_is_there_whatever_the_descriptions_take() {
    let names = names(1_262);
    let description = "Use this skill when the user asks for it. ".repeat(20);

    let list =
        render_skill_list(&lines(&names, &description), SkillListRoom { usual: 12_000, names: 40_000 });

    assert!(names.iter().all(|name| list.text.contains(name.as_str())));
    assert_eq!(list.left_out, 0);
    assert_eq!(list.without_description, 1_262, "all names take all of the room");
    assert!(
        list.text.ends_with("[1,262 have no room here; read_file with path \"skill:\" lists all of them]")
    );
}

/// E5: with more room, the first skills have the beginning of their description.
#[test]
fn descriptions_are_cut_before_they_are_left_out() {
    let names = names(100);
    let description = "word ".repeat(200);

    let list = render_skill_list(&lines(&names, &description), SkillListRoom { usual: 8_000, names: 40_000 });

    assert!(list.shortened > 20 && list.without_description > 0, "{list:?}");
    assert_eq!(list.shortened + list.without_description, 100);
    assert!(list.text.contains("- skill-0000: word") && list.text.len() <= 8_000, "{}", list.text.len());
    assert!(
        list.text.contains(&format!(
            "[{} descriptions are cut, {} have",
            list.shortened, list.without_description
        ))
    );
}

/// E5: names that don't fit into a small window are counted, never dropped in silence.
#[test]
fn names_that_do_not_fit_are_counted() {
    let names = names(1_000);

    let list = render_skill_list(&lines(&names, "x"), SkillListRoom { usual: 500, names: 1_000 });

    assert!(list.left_out > 0 && list.text.contains("more skills are not even named"), "{}", list.text);
    assert!(list.text.len() <= 1_000 + 100);
}

#[test]
fn the_text_of_a_skill_in_use_is_whole_or_says_how_to_read_the_rest() {
    let body = "Run the tests first. ".repeat(100);

    let whole = render_active_skill("release", "/skills/release", Ok(&body), 10_000);
    let part = render_active_skill("release", "/skills/release", Ok(&body), 1_000);
    let none = render_active_skill("release", "/skills/release", Ok(&body), 100);
    let changed = render_active_skill("release", "/skills/release", Err("its folder has changed"), 10_000);

    assert_eq!(whole, format!("[Skill in use: release]\nFolder: /skills/release\n{body}"));
    assert!(
        part.len() <= 1_000
            && part.contains("Run the tests")
            && part.ends_with("\"skill:release\" shows it]")
    );
    assert!(none.contains("no room") && none.contains("skill:release"));
    assert!(changed.contains("its folder has changed") && !changed.contains("Run the tests"));
}

proptest! {
    /// E5: each skill is listed, named or counted, and the list never exceeds its room by more than its note.
    #[test]
    fn no_skill_is_lost(count in 1_usize..300, words in 0_usize..60, usual in 0_usize..6_000, more in 0_usize..6_000) {
        let (names, description) = (names(count), "word ".repeat(words));

        let list = render_skill_list(&lines(&names, &description), SkillListRoom { usual, names: usual + more });

        let named = names.iter().filter(|name| list.text.contains(name.as_str())).count();
        prop_assert_eq!(named + list.left_out, count);
        prop_assert!(list.text.len() <= (usual + more).max(600), "{} bytes", list.text.len());
    }
}
