use super::*;
use crate::Private;

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

fn private(at: &str, kept_in: &str) -> Private {
    Private { at: at.into(), kept_in: Some(kept_in.into()) }
}

fn covers(bounds: &Bounds) -> Vec<(String, Cover)> {
    let covers = MountPlan::new(bounds).covers.into_iter();
    covers.map(|(path, cover)| (path.to_str().unwrap().to_owned(), cover)).collect()
}

#[test]
fn what_lies_in_a_private_folder_is_covered_only_if_it_is_kept() {
    let bounds = Bounds {
        private: vec![private("/tmp", "/home/me/.longhaul/tmp/one")],
        kept: paths(&["/tmp/project"]),
        hidden: paths(&["/tmp/others", "/tmp/project/secret"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [
            ("/tmp".to_owned(), Cover::Folder("/home/me/.longhaul/tmp/one".into())),
            ("/tmp/project".to_owned(), Cover::Kept),
            ("/tmp/project/secret".to_owned(), Cover::Hidden),
        ]
    );
}

#[test]
fn a_denied_place_can_not_be_carried_away_with_a_folder_that_holds_it() {
    let bounds = Bounds {
        write: paths(&["/yard"]),
        hidden: paths(&["/yard/a/b/secret", "/elsewhere/c/secret"]),
        read_only: paths(&["/yard/d/fixed"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    let pinned: Vec<&str> =
        covers.iter().filter(|(_, cover)| *cover == Cover::Pinned).map(|(path, _)| path.as_str()).collect();
    assert_eq!(pinned, ["/yard/a", "/yard/a/b", "/yard/d"]);
}

#[test]
fn of_several_covers_of_one_path_the_strictest_is_taken() {
    let bounds = Bounds {
        private: vec![private("/tmp", "/kept")],
        kept: paths(&["/tmp", "/yard"]),
        write: paths(&["/yard"]),
        read_only: paths(&["/yard"]),
        hidden: paths(&["/yard"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [("/tmp".to_owned(), Cover::Folder("/kept".into())), ("/yard".to_owned(), Cover::Hidden)]
    );
}

#[test]
fn a_hidden_folder_leads_on_to_what_is_kept_in_it() {
    let bounds =
        Bounds { hidden: paths(&["/run", "/srv"]), kept: paths(&["/run/resolve/conf"]), ..Bounds::default() };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [
            ("/run".to_owned(), Cover::HiddenAround),
            ("/run/resolve/conf".to_owned(), Cover::Kept),
            ("/srv".to_owned(), Cover::Hidden),
        ]
    );
}

#[test]
fn what_may_be_written_is_covered_also_where_it_is_kept() {
    let bounds = Bounds {
        private: vec![private("/tmp", "/kept")],
        write: paths(&["/tmp/project", "/tmp/elsewhere"]),
        kept: paths(&["/tmp/project", "/tmp/project/inner", "/tmp/library"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [
            ("/tmp".to_owned(), Cover::Folder("/kept".into())),
            ("/tmp/library".to_owned(), Cover::Kept),
            ("/tmp/project".to_owned(), Cover::Writable),
        ]
    );
}

#[test]
fn nothing_inside_of_what_can_not_be_written_can_be_written() {
    let bounds = Bounds {
        write: paths(&["/yard", "/yard/vendor/inner"]),
        read_only: paths(&["/yard/vendor", "/yard/fixed"]),
        hidden: paths(&["/yard/fixed/deep/secret"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [
            ("/yard".to_owned(), Cover::Writable),
            ("/yard/fixed".to_owned(), Cover::ReadOnly),
            ("/yard/fixed/deep".to_owned(), Cover::ReadOnly),
            ("/yard/fixed/deep/secret".to_owned(), Cover::Hidden),
            ("/yard/vendor".to_owned(), Cover::ReadOnly),
            ("/yard/vendor/inner".to_owned(), Cover::ReadOnly),
        ]
    );
}

#[test]
fn a_private_folder_is_not_fixed_but_what_is_kept_in_a_fixed_one_is() {
    let bounds = Bounds {
        private: vec![private("/tmp", "/kept")],
        write: paths(&["/tmp/project"]),
        kept: paths(&["/tmp/project"]),
        read_only: paths(&["/tmp"]),
        ..Bounds::default()
    };

    let covers = covers(&bounds);

    assert_eq!(
        covers,
        [("/tmp".to_owned(), Cover::Folder("/kept".into())), ("/tmp/project".to_owned(), Cover::ReadOnly)]
    );
}

#[test]
fn where_everything_may_be_written_only_masks_are_mounted_and_the_kernel_is_not_set() {
    let bounds = Bounds { write: paths(&["/"]), hidden: paths(&["/run"]), ..Bounds::default() };

    let plan = MountPlan::new(&bounds);

    assert_eq!(
        plan,
        MountPlan {
            covers: vec![
                ("/proc".into(), Cover::ReadOnly),
                ("/run".into(), Cover::Hidden),
                ("/sys".into(), Cover::ReadOnly),
            ],
            rest: Rest::Writable,
        }
    );
}

#[test]
fn where_everything_is_fixed_nothing_can_be_written_whatever_else_is_said() {
    let bounds = Bounds { write: paths(&["/"]), read_only: paths(&["/"]), ..Bounds::default() };

    let plan = MountPlan::new(&bounds);

    assert_eq!(plan, MountPlan { covers: Vec::new(), rest: Rest::ReadOnly });
}
