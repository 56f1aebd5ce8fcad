use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use longhaul_journal::SqliteJournal;
use longhaul_memory::{Error, MirrorReport, PageEdit, PageSet, add_note, change_page, mirror_pages};
use longhaul_protocol::Speaker;
use longhaul_testkit::TestHome;

const SCOPE: &str = "agent-x";

struct Bench {
    place: TestHome,
    journal: Arc<SqliteJournal>,
}

impl Bench {
    async fn new() -> Self {
        let place = TestHome::in_memory();
        let journal = place.journal().await;
        Self { place, journal }
    }

    fn folder(&self) -> PathBuf {
        self.place.home().join("memory").join(SCOPE)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)).ok()
    }

    async fn edit(&self, page: &str, text: &str) {
        let text = (!text.is_empty()).then(|| text.to_owned());
        let change = PageEdit { page: page.to_owned(), text, reason: String::new(), made_from: None };
        change_page(&*self.journal, SCOPE, change).await.unwrap();
    }

    async fn note(&self, text: &str) {
        add_note(&*self.journal, SCOPE, text, Speaker::User).await.unwrap();
    }

    async fn try_mirror(&self) -> longhaul_memory::Result<MirrorReport> {
        mirror_pages(&PageSet::load(&*self.journal, SCOPE).await.unwrap(), &self.folder())
    }

    async fn mirror(&self) -> MirrorReport {
        self.try_mirror().await.unwrap()
    }
}

fn written(pages: &[&str]) -> MirrorReport {
    MirrorReport { written: pages.iter().map(|page| (*page).to_owned()).collect(), left: vec![] }
}

/// Y10
#[tokio::test]
async fn pages_are_private_files_and_only_what_changed_is_written() {
    let bench = Bench::new().await;
    let nothing = bench.mirror().await;
    bench.edit("core", "# Core\n- tea").await;
    bench.edit("build", "- cargo").await;

    let first = bench.mirror().await;
    let second = bench.mirror().await;
    bench.edit("core", "# Core\n- coffee").await;
    bench.edit("build", "").await;
    let third = bench.mirror().await;

    assert_eq!((nothing, first), (written(&[]), written(&["build", "core"])));
    assert_eq!((second, third), (written(&[]), written(&["core"])));
    assert_eq!(
        (bench.read("core.md").as_deref(), bench.read("build.md")),
        (Some("# Core\n- coffee\n"), None)
    );
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(bench.folder()), mode(bench.file("core.md")), mode(bench.file(".mirror.json"))),
        (0o700, 0o600, 0o600)
    );
    let names = fs::read_dir(bench.folder()).unwrap().count();
    assert_eq!(names, 2, "nothing is left lying about");
}

/// Y10: whoever comes late with what they read before brings nothing back.
#[tokio::test]
async fn who_has_read_less_changes_no_file_of_who_has_read_more() {
    let bench = Bench::new().await;
    bench.edit("tea", "- green").await;
    bench.edit("milk", "- much").await;
    let late = PageSet::load(&*bench.journal, SCOPE).await.unwrap();
    bench.edit("tea", "- black").await;
    bench.edit("milk", "").await;
    bench.mirror().await;

    let mirrored = mirror_pages(&late, &bench.folder()).unwrap();

    assert_eq!((mirrored, bench.mirror().await), (written(&[]), written(&[])));
    assert_eq!((bench.read("tea.md").as_deref(), bench.read("milk.md")), (Some("- black\n"), None));
}

/// Y10: several at once, as a tool, a person and the machine may be, take no file for changed by hand.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_leave_the_newest_texts() {
    let bench = Bench::new().await;
    let mut mirrors = tokio::task::JoinSet::new();
    for number in 0..40 {
        bench.edit("tea", &format!("- cup {number}")).await;
        let (book, folder) = (PageSet::load(&*bench.journal, SCOPE).await.unwrap(), bench.folder());
        mirrors.spawn_blocking(move || mirror_pages(&book, &folder).unwrap());
    }

    let left: Vec<String> = mirrors.join_all().await.into_iter().flat_map(|mirrored| mirrored.left).collect();

    assert_eq!(left, [""; 0]);
    assert_eq!(bench.read("tea.md").as_deref(), Some("- cup 39\n"));
}

/// Y10
#[tokio::test]
async fn a_file_that_a_person_changed_is_left_until_it_is_taken_in() {
    let bench = Bench::new().await;
    bench.edit("core", "- tea").await;
    bench.mirror().await;
    fs::write(bench.file("core.md"), "- water").unwrap();

    let left = bench.mirror().await;
    bench.note("no sugar").await;
    let still_left = bench.mirror().await;
    let kept = bench.read("core.md");
    bench.edit("core", &kept.clone().unwrap()).await;
    let taken_in = bench.mirror().await;
    bench.note("no milk").await;
    let goes_on = bench.mirror().await;

    assert_eq!(left.left.len(), 1);
    assert!(left.left[0].contains("`longhaul memory edit core --file "), "{}", left.left[0]);
    assert_eq!((left, kept.as_deref()), (still_left, Some("- water")));
    assert_eq!((taken_in, goes_on), (written(&["core"]), written(&["core"])));
}

/// Y10
#[tokio::test]
async fn a_file_that_a_person_deleted_comes_back_only_with_that_persons_change() {
    let bench = Bench::new().await;
    bench.edit("core", "- tea").await;
    bench.mirror().await;
    fs::remove_file(bench.file("core.md")).unwrap();

    let left = bench.mirror().await;
    bench.note("no sugar").await;
    let still_left = bench.mirror().await;
    let missing = bench.read("core.md");
    bench.edit("core", "- coffee").await;
    let back = bench.mirror().await;

    assert!(left.left[0].contains("was deleted, so it is not written again"), "{left:?}");
    assert_eq!((left, missing), (still_left, None));
    assert_eq!(back, written(&["core"]));
}

#[tokio::test]
async fn a_changed_file_of_a_removed_page_is_left_and_a_deleted_one_forgotten() {
    let bench = Bench::new().await;
    for page in ["a", "b"] {
        bench.edit(page, "- tea").await;
    }
    bench.mirror().await;
    fs::write(bench.file("a.md"), "- mine").unwrap();
    fs::remove_file(bench.file("b.md")).unwrap();
    bench.edit("a", "").await;
    bench.edit("b", "").await;

    let mirrored = bench.mirror().await;

    assert_eq!(mirrored.left.len(), 1);
    assert!(mirrored.left[0].contains("its page was removed"), "{mirrored:?}");
    assert_eq!(bench.read("a.md").as_deref(), Some("- mine"));
}

#[tokio::test]
async fn without_its_notes_files_are_judged_by_the_texts_of_their_pages() {
    let bench = Bench::new().await;
    for page in ["gone", "mine", "old", "same", "removed"] {
        bench.edit(page, "- tea").await;
    }
    bench.mirror().await;
    for text in ["", "{\"pages\": 7}", "not json"] {
        fs::write(bench.file(".mirror.json"), text).unwrap();
        let _ = fs::remove_file(bench.file("gone.md"));
        fs::write(bench.file("mine.md"), "- mine").unwrap();
        bench.edit("old", &format!("- coffee {text}")).await;

        let mirrored = bench.mirror().await;

        assert_eq!(mirrored.written, ["gone", "old"]);
        assert_eq!(mirrored.left.len(), 1, "{mirrored:?}");
        assert_eq!(bench.read("mine.md").as_deref(), Some("- mine"));
    }
    fs::remove_file(bench.file(".mirror.json")).unwrap();
    bench.edit("removed", "").await;
    bench.mirror().await;
    assert_eq!(bench.read("removed.md"), None);
}

#[tokio::test]
async fn links_are_never_followed() {
    let bench = Bench::new().await;
    bench.edit("core", "- tea").await;
    let outside = bench.place.work().join("outside.md");
    fs::write(&outside, "- theirs").unwrap();
    fs::create_dir_all(bench.folder()).unwrap();
    symlink(&outside, bench.file("core.md")).unwrap();

    let mirrored = bench.mirror().await;
    fs::remove_dir_all(bench.folder()).unwrap();
    symlink(bench.place.work(), bench.folder()).unwrap();
    let folder = bench.try_mirror().await;
    fs::remove_file(bench.folder()).unwrap();
    fs::create_dir_all(bench.folder()).unwrap();
    symlink(&outside, bench.file(".mirror.json")).unwrap();
    let notes = bench.try_mirror().await;

    assert!(mirrored.left[0].contains("it is a symbolic link"), "{mirrored:?}");
    assert!(matches!(folder, Err(Error::File { .. })), "{folder:?}");
    assert!(matches!(notes, Err(Error::File { .. })), "{notes:?}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "- theirs");
    assert!(!bench.place.work().join("core.md").exists());
}

#[tokio::test]
async fn odd_things_in_the_way_are_said() {
    let bench = Bench::new().await;
    bench.edit("core", "- tea").await;
    bench.edit("large", "- tea").await;
    fs::create_dir_all(bench.file("core.md")).unwrap();
    fs::write(bench.file("large.md"), vec![b'x'; 1 << 20]).unwrap();
    let foreign = r#"{"pages":{"../../work/theirs":{"seq":1,"text":"0000000000000000000000000000000000000000000000000000000000000000"}}}"#;
    fs::write(bench.file(".mirror.json"), foreign).unwrap();
    fs::write(bench.place.work().join("theirs.md"), "- theirs").unwrap();

    let mirrored = bench.mirror().await;
    fs::remove_dir_all(bench.folder()).unwrap();
    fs::write(bench.folder(), "a file").unwrap();
    let file = bench.try_mirror().await;

    assert_eq!((mirrored.written.len(), mirrored.left.len()), (0, 2));
    assert!(matches!(file, Err(Error::File { .. })), "{file:?}");
    assert!(bench.place.work().join("theirs.md").exists());
}
