//! `longhaul sessions import`: a session from an export.

use std::path::Path;

use longhaul_agent::now;
use longhaul_journal::{Author, Journal, import_session, verify_export};
use longhaul_protocol::PrintablePath;

use super::export::describe_export;
use crate::args::{GlobalArgs, ImportOptions};
use crate::exit;
use crate::output::{note, print};

pub(crate) async fn run(globals: &GlobalArgs, options: ImportOptions) -> anyhow::Result<u8> {
    let ImportOptions { file, key, mine, json: as_json } = options;
    let work_dir = match globals.work_dir()? {
        Some(folder) => Some(folder),
        None => std::env::current_dir().and_then(|folder| folder.canonicalize()).ok(),
    };
    let work_dir = work_dir.and_then(|folder| folder.to_str().map(str::to_owned));
    let author = if mine { Author::Importer } else { Author::Stranger };
    if globals.existing_home()?.is_none() {
        // A bad file must not leave a new home behind.
        verify_export(&file)?;
    }
    let journal = globals.open_or_create_journal().await?;
    let options = longhaul_journal::ImportOptions { at: now(), key, work_dir, author };
    let imported = import_session(&journal, &file, &options).await;
    journal.close().await;
    let imported = imported?;
    let mut lines = vec![format!("Imported {}", describe_export(&imported))];
    if let Some(folder) = &options.work_dir {
        let folder = Path::new(folder).printable();
        lines.push(format!("It works in {folder}. Unfinished work in it was stopped."));
    }
    print(as_json, || imported, || lines)?;
    if !mine && !as_json {
        note("its user messages count as someone else's; if the session is your own, import it with --mine");
    }
    Ok(exit::DONE)
}
