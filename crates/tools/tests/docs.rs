//! T15: `docs/tools.md` is made from the tools' schemas.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::path::Path;

use longhaul_tools::{About, all_abouts, reference};

/// T15
#[test]
fn docs_tools_md_is_as_the_tools_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let abouts = all_abouts();
    let page = reference(&abouts.iter().collect::<Vec<&About>>());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }

    let stored = std::fs::read_to_string(&path).unwrap_or_default();

    assert!(
        stored == page,
        "docs/tools.md is not as the tools say; renew it with `UPDATE_DOCS=1 cargo test -p longhaul-tools docs`"
    );
}
