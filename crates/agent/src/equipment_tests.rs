use super::*;

/// C8: 2,000 lines and 32 KiB, or a twentieth of the window, whatever is less.
#[test]
fn one_result_takes_a_twentieth_of_a_small_window() {
    let usual = Cap::default();

    assert_eq!(cap_for(None), usual);
    assert_eq!(cap_for(Some(1_000_000)), usual);
    assert_eq!(cap_for(Some(8_192)), Cap { bytes: 8_192 * 4 / 20, ..usual });
}

/// P1, P3: or the next run would do what a command has written there.
#[test]
fn the_config_in_use_can_not_be_written_where_it_lies_in_the_work_folder() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    std::fs::write(work.join("agent.toml"), "").unwrap();
    let file = Some(work.join("agent.toml"));
    let sources = crate::Sources { config_file: file, work_dir: Some(work.clone()), ..Default::default() };
    let config = Config::load(work.join("home"), &sources).unwrap();

    let scope = scope(&config, &work);

    let denied: Vec<_> = scope.denied().collect();
    assert!(denied.contains(&(work.join("agent.toml"), longhaul_tools::Permission::Write)), "{denied:?}");
}
