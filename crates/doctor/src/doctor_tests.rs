use std::path::Path;

use longhaul_agent::config::{SandboxMode, SandboxSettings, WithoutSandbox};
use longhaul_agent::keeper::{Enforcement, Network};

use super::{MIN_FREE_BYTES, free_space_finding, sandbox_findings};

/// S8, P3
#[test]
fn a_sandbox_that_is_not_there_is_found_with_what_to_do_and_what_becomes_of_commands() {
    let nothing =
        Enforcement { no_landlock: Some("the kernel says no".to_owned()), ..Enforcement::default() };
    let everything = Enforcement { landlock: Some(7), ..Enforcement::default() };

    let sandbox = |mode| SandboxSettings { mode, network: None, unavailable: WithoutSandbox::Refuse };
    let without = sandbox_findings(&nothing, &sandbox(SandboxMode::On), Network::Open).remove(0);
    let with = sandbox_findings(&everything, &sandbox(SandboxMode::Strict), Network::Closed);

    assert!(without.found.contains("lsm="), "{}", without.found);
    assert!(without.to_do.unwrap().contains("for now, commands are refused"));
    assert!(with.len() == 1 && with[0].to_do.is_none(), "{}", with[0].found);
    assert!(with[0].found.contains("mode strict, network off"), "{}", with[0].found);
}

/// S8
#[test]
fn a_disk_with_little_room_is_found() {
    let (little, enough) = (
        free_space_finding(MIN_FREE_BYTES - 1, Path::new("/h")),
        free_space_finding(MIN_FREE_BYTES, Path::new("/h")),
    );

    assert_eq!(
        (little.found.as_str(), little.to_do.as_deref()),
        ("1023 MiB free on the disk of /h", Some("free some space, or use another folder with --home"))
    );
    assert!(enough.ok && enough.to_do.is_none());
    assert_eq!(enough.found, "1 GiB free on the disk of /h");
}
