//! The `.mcp.json` of a project: MCP servers, which are programs that the project wants to run. They are used only if the user has read
//! the file and trusts it (P7).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_config::{TrustState, project_file_candidates};
use longhaul_mcp::{PROJECT_FILE, ServerSettings, parse_project_file};
use longhaul_protocol::{Hash, PrintablePath};

use super::files::read_project_file;
use super::project::file_place;
use super::sources::Sources;
use super::trust::load_trust_list;

/// The `.mcp.json` of the project that a folder belongs to, as it was when it was read.
#[derive(Debug)]
pub struct ProjectServersFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Its content.
    pub text: String,
    /// Whether the user trusts it.
    pub trust: TrustState,
    /// Its content when the user last trusted it.
    pub trusted_text: Option<String>,
    /// The servers in it.
    pub servers: BTreeMap<String, ServerSettings>,
    /// What is wrong in it.
    pub warnings: Vec<String>,
}

impl ProjectServersFile {
    /// The nearest file at or above the work folder. The error says why there is none that can be used.
    pub fn find(home: &Path, sources: &Sources) -> Result<Option<Self>, String> {
        let folder = sources.work_dir();
        let candidates = project_file_candidates(&folder, PROJECT_FILE)
            .map_err(|error| format!("{}: {error}", folder.printable()))?;
        for path in candidates {
            let ignored = |reason: &str| format!("ignoring {}: {reason}", path.printable());
            let Some(text) =
                read_project_file(&path, file_place(&path, sources)).map_err(|why| ignored(&why))?
            else {
                continue;
            };
            let (servers, warnings) = parse_project_file(&text).map_err(|why| ignored(&why))?;
            let list = load_trust_list(home).map_err(|error| error.to_string())?;
            let hash = Hash::of(&text);
            let warnings =
                warnings.iter().map(|warning| format!("{}: {warning}", path.printable())).collect();
            return Ok(Some(Self {
                hash,
                trust: list.state(&path, hash),
                trusted_text: list.find(&path).and_then(|trusted| trusted.text.clone()),
                servers,
                warnings,
                path,
                text,
            }));
        }
        Ok(None)
    }

    /// Why the file is not used, and how to change that. `None` if it is trusted, or has no servers.
    pub fn refusal(&self) -> Option<String> {
        let next = match self.trust {
            TrustState::Trusted => return None,
            TrustState::Unknown => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                format!("to use them, run `longhaul trust` in {}", folder.printable())
            }
            TrustState::Changed => {
                "the file has changed since it was trusted; review it, then run `longhaul trust`".to_owned()
            }
        };
        let names: Vec<&str> = self.servers.keys().map(String::as_str).collect();
        let path = self.path.printable();
        (!names.is_empty()).then(|| format!("{path}: ignoring the MCP servers {}; {next}", names.join(", ")))
    }
}

/// The servers of a trusted file, and warnings about one that is not used. A broken file must not prevent the user from working.
pub(crate) fn load_project_servers(
    home: &Path,
    sources: &Sources,
) -> (BTreeMap<String, ServerSettings>, Vec<String>) {
    match ProjectServersFile::find(home, sources) {
        Ok(None) => (BTreeMap::new(), vec![]),
        Ok(Some(file)) => match file.refusal() {
            Some(refusal) => (BTreeMap::new(), vec![refusal]),
            None => (file.servers, file.warnings),
        },
        Err(warning) => (BTreeMap::new(), vec![warning]),
    }
}
