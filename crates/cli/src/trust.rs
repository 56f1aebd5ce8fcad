//! `longhaul trust`: whether the file of a project may set everything.

use std::path::Path;

use longhaul_agent::{Beyond, ProjectFile, Sources, Standing, TrustList, TrustedFile};
use serde_json::json;

use crate::arguments::{Choice, Place, TrustOptions};
use crate::output::{json, line, shortened};
use crate::{BadUsage, exit};

pub(crate) fn run(place: &Place, choice: &Choice, options: &TrustOptions) -> anyhow::Result<u8> {
    let (home, sources) = (place.folder()?, choice.sources()?);
    if options.list {
        list(&home, options.json)?;
    } else if options.remove {
        remove(&home, &sources, options.json)?;
    } else {
        trust(&home, &sources, options.json)?;
    }
    Ok(exit::DONE)
}

fn trust(home: &Path, sources: &Sources, as_json: bool) -> anyhow::Result<()> {
    let Some(file) = ProjectFile::find(home, sources)? else {
        return Err(none_here(sources, "there is no longhaul.toml in", "; there is nothing to trust"));
    };
    // What is shown is what is trusted: both are of the bytes that were read once.
    if !as_json {
        show(&file)?;
    }
    TrustList::trust(home, &file)?;
    if as_json {
        let sets = file.beyond.iter().map(|beyond| {
            json!({"key": beyond.key, "value": beyond.value, "line": beyond.line, "reason": beyond.reason})
        });
        return json(&json!({
            "path": file.path,
            "blake3": file.hash,
            "before": in_words(Some(file.standing)),
            "sets": sets.collect::<Vec<_>>(),
        }));
    }
    let again = if file.standing == Standing::Trusted { "is still" } else { "is" };
    line(format!("It {again} trusted as it is now. After a change of it, say `longhaul trust` again."))
}

fn show(file: &ProjectFile) -> anyhow::Result<()> {
    line(file.path.display())?;
    if file.beyond.is_empty() {
        return line("It sets nothing that a project could not set anyway.");
    }
    line("It sets more than a project may by itself:")?;
    for Beyond { key, value, line: number, reason } in &file.beyond {
        line(format!("  line {number}: {key} = {}  # {reason}", shortened(&value.to_string(), 200)))?;
    }
    Ok(())
}

fn list(home: &Path, as_json: bool) -> anyhow::Result<()> {
    let list = TrustList::of_home(home)?;
    if as_json {
        let files = list.files().iter().map(
            |file| json!({"path": file.path, "blake3": file.blake3, "standing": in_words(file.standing())}),
        );
        return json(&files.collect::<Vec<_>>());
    }
    if list.files().is_empty() {
        return line("No project is trusted.");
    }
    let shown = |file: &TrustedFile| format!("{}  # {}", file.path.display(), in_words(file.standing()));
    list.files().iter().map(shown).try_for_each(line)
}

fn remove(home: &Path, sources: &Sources, as_json: bool) -> anyhow::Result<()> {
    let Some(path) = TrustList::distrust(home, sources)? else {
        return Err(none_here(
            sources,
            "no longhaul.toml is trusted in",
            "; `longhaul trust --list` shows all",
        ));
    };
    if as_json {
        return json(&json!({"path": path, "removed": true}));
    }
    line(format!("{} is no longer trusted", path.display()))
}

fn none_here(sources: &Sources, what: &str, next: &str) -> anyhow::Error {
    let here = || std::env::current_dir().unwrap_or_default();
    let folder = sources.work_dir.clone().unwrap_or_else(here);
    BadUsage(format!("{what} {} or above it{next}", folder.display())).into()
}

fn in_words(standing: Option<Standing>) -> &'static str {
    match standing {
        Some(Standing::Trusted) => "trusted",
        Some(Standing::Changed) => "changed",
        Some(Standing::Unknown) => "unknown",
        None => "gone",
    }
}
