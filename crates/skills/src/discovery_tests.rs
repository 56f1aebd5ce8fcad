use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn write_skill(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: About {name}\n---\n"))
        .unwrap();
}

fn root(path: &Path, source: SkillSource, base: &Path) -> SkillRoot {
    SkillRoot { path: path.to_owned(), source, base: base.to_owned() }
}

fn names(discovery: &Discovery) -> Vec<&str> {
    discovery.places.iter().map(|place| place.name.as_str()).collect()
}

/// E5: 200 skills, one of them malformed: only that one suffers.
#[test]
fn one_malformed_skill_of_200_costs_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    (0..200).for_each(|number| write_skill(&folder.path().join(format!("skills/skill-{number:03}"))));
    fs::write(folder.path().join("skills/skill-077/SKILL.md"), "---\nname: [\n---\n").unwrap();

    let found = find_skill_folders(&[root(&folder.path().join("skills"), SkillSource::User, folder.path())]);

    let (usable, malformed): (Vec<_>, Vec<_>) =
        found.places.iter().partition(|place| place.document().is_ok());
    assert_eq!((usable.len(), malformed.len()), (199, 1));
    assert_eq!(malformed[0].name, "skill-077");
    assert!(malformed[0].document().unwrap_err().to_string().contains("not valid YAML"));
}

#[test]
fn skills_are_found_in_order_up_to_a_depth_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let (agents, claude) = (folder.path().join(".agents/skills"), folder.path().join(".claude/skills"));
    for name in ["b", "a", "group/c", "group/deep/d", "group/deep/er/e", ".hidden", "node_modules/f"] {
        write_skill(&agents.join(name));
    }
    fs::write(agents.join("README.md"), "").unwrap();
    fs::create_dir_all(&claude).unwrap();
    symlink("../../.agents/skills/a", claude.join("a")).unwrap();
    write_skill(&claude.join("z"));

    let roots = [&agents, &claude].map(|path| root(path, SkillSource::Project, folder.path()));
    let found = find_skill_folders(&roots);

    assert_eq!(names(&found), ["a", "b", "c", "d", "z"], "a stands there once; e is too deep");
    assert_eq!(found.notes, Vec::<String>::new());
}

/// E5: no skill stands for a folder elsewhere.
#[test]
fn a_link_that_leads_out_is_refused() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_skill(&elsewhere.path().join("stolen"));
    let skills = folder.path().join("skills");
    fs::create_dir(&skills).unwrap();
    symlink(elsewhere.path().join("stolen"), skills.join("stolen")).unwrap();
    symlink("/proc/self", skills.join("odd")).unwrap();
    symlink("missing", skills.join("broken")).unwrap();
    symlink(".", skills.join("circle")).unwrap();

    let found = find_skill_folders(&[root(&skills, SkillSource::Home, folder.path())]);

    assert_eq!(names(&found), ["stolen"]);
    let said = found.places[0].document().unwrap_err().to_string();
    assert!(said.starts_with("it is a link that leads out of"), "{said}");

    // The whole folder of skills.
    symlink(elsewhere.path(), folder.path().join("linked")).unwrap();
    let found =
        find_skill_folders(&[root(&folder.path().join("linked"), SkillSource::Project, folder.path())]);
    assert_eq!(found.places, []);
    assert!(found.notes[0].contains("is a link that leads out of"), "{:?}", found.notes);
}

#[test]
fn a_path_of_the_config_may_be_a_skill_itself() {
    let folder = tempfile::tempdir().unwrap();
    write_skill(&folder.path().join("mine"));

    let path = folder.path().join("mine");
    let found = find_skill_folders(&[root(&path, SkillSource::Config, &path)]);

    assert_eq!(names(&found), ["mine"]);
}
