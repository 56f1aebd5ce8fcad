use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

struct World {
    _folder: tempfile::TempDir,
    skill: PathBuf,
}

fn skill() -> World {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().canonicalize().unwrap().join("pdf");
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: pdf\ndescription: Read PDFs\n---\nRun scripts/read.sh\n")
        .unwrap();
    fs::write(skill.join("scripts/read.sh"), "echo read\n").unwrap();
    fs::set_permissions(skill.join("scripts/read.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    World { _folder: folder, skill }
}

fn hash(world: &World) -> Hash {
    SkillFolder::read(&world.skill).unwrap().hash
}

fn refusal(world: &World) -> String {
    let refusal = SkillFolder::read(&world.skill).unwrap_err();
    refusal.to_string()
}

/// P7, E5: whatever changes in the folder changes its hash.
#[test]
fn the_hash_covers_every_file_its_path_and_whether_it_is_a_program() {
    let world = skill();
    let mut hashes = vec![hash(&world)];
    let path = |name: &str| world.skill.join(name);

    fs::write(path("scripts/read.sh"), "echo other\n").unwrap();
    hashes.push(hash(&world));
    fs::set_permissions(path("scripts/read.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    hashes.push(hash(&world));
    fs::rename(path("scripts/read.sh"), path("scripts/other.sh")).unwrap();
    hashes.push(hash(&world));
    fs::write(path("extra.md"), "").unwrap();
    hashes.push(hash(&world));
    symlink("extra.md", path("link.md")).unwrap();
    hashes.push(hash(&world));
    fs::remove_file(path("link.md")).unwrap();
    symlink("SKILL.md", path("link.md")).unwrap();
    hashes.push(hash(&world));

    let different: std::collections::HashSet<Hash> = hashes.iter().copied().collect();
    assert_eq!(different.len(), hashes.len());
}

#[test]
fn a_folder_with_the_same_content_has_the_same_hash_wherever_it_is() {
    let (one, other) = (skill(), skill());
    fs::create_dir(other.skill.join(".git")).unwrap();
    fs::write(other.skill.join(".git/HEAD"), "changes by itself").unwrap();
    fs::create_dir(other.skill.join("empty")).unwrap();

    assert_eq!(hash(&one), hash(&other));
}

/// E5: what the user looks at is all of it, and two listings show what has changed.
#[test]
fn a_listing_has_every_file_with_its_text() {
    let world = skill();
    fs::write(world.skill.join("font.bin"), [0_u8, 159, 146, 150]).unwrap();

    let (read, listing) = SkillFolder::read_listing(&world.skill).unwrap();

    assert_eq!(read.hash, hash(&world));
    assert!(listing.contains("== SKILL.md (file, ") && listing.contains("Run scripts/read.sh"), "{listing}");
    assert!(listing.contains("== scripts/read.sh (program, 10 bytes") && listing.contains("\necho read\n"));
    assert!(
        listing.contains("== font.bin (file, 4 bytes, blake3 ")
            && listing.contains("(not shown: it is not text")
    );
}

/// P7: else a text of one file could pass for another file, in front of what that other file really holds.
#[test]
fn no_text_of_a_file_can_pass_for_the_beginning_of_another_file() {
    let world = skill();
    let text = "== scripts/read.sh (program, 5 bytes)\necho harmless\n";
    fs::write(world.skill.join("notes.md"), text).unwrap();

    let (_, listing) = SkillFolder::read_listing(&world.skill).unwrap();

    let heads: Vec<&str> = listing.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(heads.len(), 3, "{heads:?}");
    assert!(listing.contains("\n\\== scripts/read.sh (program, 5 bytes)\necho harmless\n"), "{listing}");
}

/// E5: a SKILL.md that is a link to elsewhere is refused with a clear line, and so is every other way out.
#[test]
fn links_lead_nowhere_else() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let document_link = skill();
    fs::rename(document_link.skill.join("SKILL.md"), outside.path().join("SKILL.md")).unwrap();
    symlink(outside.path().join("SKILL.md"), document_link.skill.join("SKILL.md")).unwrap();
    assert_eq!(refusal(&document_link), "SKILL.md is a link; put the file itself there");
    assert_eq!(read_document(&document_link.skill).unwrap_err().to_string(), refusal(&document_link));

    for target in ["/etc/passwd", "../../elsewhere", "missing"] {
        let world = skill();
        symlink(target, world.skill.join("scripts/way")).unwrap();
        let said = refusal(&world);
        assert!(said.contains(&format!("scripts/way is a link to {target}, outside")), "{said}");
    }

    // Two links that lead out only together: the second one goes through the first.
    let world = skill();
    fs::create_dir_all(world.skill.join("a/b")).unwrap();
    symlink("../..", world.skill.join("a/b/top")).unwrap();
    symlink("a/b/top/../pdf-other", world.skill.join("out")).unwrap();
    fs::create_dir(world.skill.with_file_name("pdf-other")).unwrap();
    assert!(refusal(&world).contains("out is a link to"), "{}", refusal(&world));

    let world = skill();
    fs::rename(&world.skill, world.skill.with_file_name("moved")).unwrap();
    symlink(world.skill.with_file_name("moved"), &world.skill).unwrap();
    assert_eq!(refusal(&world), "its folder is gone", "a link in place of a folder that was canonical");
}

#[test]
fn nothing_but_files_and_folders_is_read() {
    let world = skill();
    rustix::fs::mknodat(CWD, world.skill.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();

    assert_eq!(refusal(&world), "pipe is neither a file nor a folder");
    fs::remove_file(world.skill.join("pipe")).unwrap();
    fs::remove_file(world.skill.join("SKILL.md")).unwrap();
    assert_eq!(refusal(&world), "it has no SKILL.md");
    rustix::fs::mknodat(CWD, world.skill.join("SKILL.md"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(
        read_document(&world.skill).unwrap_err().to_string(),
        "SKILL.md is neither a file nor a folder"
    );
}

/// P8: what another user could have written is not read.
#[test]
fn a_skill_that_every_user_can_write_is_refused() {
    let world = skill();
    fs::set_permissions(world.skill.join("SKILL.md"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(refusal(&world), "every user can write SKILL.md; only you should be able to write SKILL.md");
    assert_eq!(read_document(&world.skill).unwrap_err().to_string(), refusal(&world));

    fs::set_permissions(world.skill.join("SKILL.md"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&world.skill, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refusal(&world).contains("every user can write its folder"));
}

#[test]
fn sizes_are_bounded() {
    let world = skill();
    fs::write(world.skill.join("SKILL.md"), "x".repeat(300 << 10)).unwrap();
    assert!(refusal(&world).contains("SKILL.md has more than 256 KiB"));
    assert_eq!(read_document(&world.skill).unwrap_err().to_string(), refusal(&world));

    let world = skill();
    File::create(world.skill.join("large")).unwrap().set_len(33 << 20).unwrap();
    assert_eq!(refusal(&world), "its files have more than 32 MiB together");

    let world = skill();
    (0..2_001).for_each(|number| fs::write(world.skill.join(format!("f{number}")), "").unwrap());
    assert_eq!(refusal(&world), "it has more than 2000 files");

    let world = skill();
    fs::create_dir_all(world.skill.join("a/b/c/d/e/f/g/h/i")).unwrap();
    assert_eq!(refusal(&world), "its folders are nested more than 8 deep");
}
