//! Which resources and prompts a server has, for the menus of the terminal and of editors. A menu never waits: it shows the last
//! known list, and a list that is too old is asked for again in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul_protocol::SessionId;
use rmcp::model::{Prompt, PromptArgument, Resource};
use rmcp::service::ServiceError;

use crate::FolderServers;
use crate::connection::Connection;
use crate::pages::all_pages;
use crate::server::Server;

/// An older list is asked for again when a menu opens.
const MAX_LIST_AGE: Duration = Duration::from_secs(10);
/// Resources, and prompts, of one server to list. A resource that is left out can still be named by its URI.
const MAX_LISTED: usize = 500;
/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A resource that a message can attach with `@server:uri`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceEntry {
    pub server: String,
    pub uri: String,
    /// Its title, or else its name.
    pub title: String,
}

/// A prompt that a user can start with `/server:name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEntry {
    pub server: String,
    pub name: String,
    pub description: String,
    pub parameters: Vec<PromptParameter>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptParameter {
    pub name: String,
    pub is_required: bool,
}

impl PromptEntry {
    /// How its arguments are typed: `TOPIC [LANGUAGE]`. Empty if it takes none.
    pub fn usage(&self) -> String {
        let word = |parameter: &PromptParameter| match parameter.is_required {
            true => parameter.name.to_uppercase(),
            false => format!("[{}]", parameter.name.to_uppercase()),
        };
        self.parameters.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The resources and prompts of a folder's servers, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentList {
    pub resources: Vec<ResourceEntry>,
    pub prompts: Vec<PromptEntry>,
    /// Changes with the lists.
    pub generation: u64,
    /// Whether a server was asked and has not answered yet.
    pub is_loading: bool,
}

/// The last known list of one server.
#[derive(Default)]
pub(crate) struct CachedContentList(Mutex<CachedList>);

#[derive(Default)]
struct CachedList {
    resources: Arc<[ResourceEntry]>,
    prompts: Arc<[PromptEntry]>,
    generation: u64,
    is_loading: bool,
    loaded_at: Option<Instant>,
}

impl FolderServers {
    /// The resources and prompts of all servers that have run. A running server whose list is too old is asked again in the background;
    /// no server is started. Needs the context of a tokio runtime.
    pub fn content_list(&self, session: SessionId) -> ContentList {
        let mut list = ContentList::default();
        for server in self.usable(session) {
            renew(&server);
            let cached = server.content_list().lock();
            list.resources.extend(cached.resources.iter().cloned());
            list.prompts.extend(cached.prompts.iter().cloned());
            list.generation += cached.generation;
            list.is_loading |= cached.is_loading;
        }
        list
    }
}

/// Asks a running server for its list, unless that has just been done.
fn renew(server: &Arc<Server>) {
    let Some(connection) = server.live_connection() else { return };
    let mut cached = server.content_list().lock();
    let is_fresh = cached.loaded_at.is_some_and(|at| at.elapsed() < MAX_LIST_AGE);
    if cached.is_loading || is_fresh {
        return;
    }
    cached.is_loading = true;
    drop(cached);
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let listing = async {
            let resources = list_resources(&connection, server.name()).await;
            (resources, list_prompts(&connection, server.name()).await)
        };
        let listed = tokio::time::timeout(LIST_TIMEOUT, listing).await;
        let mut cached = server.content_list().lock();
        // A server that can't list them any more keeps the ones that are known.
        if let Ok((resources, prompts)) = listed {
            let (resources, prompts) = (resources.ok().map(Into::into), prompts.ok().map(Into::into));
            cached.resources = resources.unwrap_or_else(|| Arc::clone(&cached.resources));
            cached.prompts = prompts.unwrap_or_else(|| Arc::clone(&cached.prompts));
        }
        cached.generation += 1;
        (cached.is_loading, cached.loaded_at) = (false, Some(Instant::now()));
    });
}

async fn list_resources(connection: &Connection, server: &str) -> Result<Vec<ResourceEntry>, ServiceError> {
    let peer = connection.peer();
    if peer.peer_info().is_none_or(|info| info.capabilities.resources.is_none()) {
        return Ok(Vec::new());
    }
    let listed = all_pages(MAX_LISTED, |page| {
        let peer = peer.clone();
        async move { peer.list_resources(page).await.map(|page| (page.resources, page.next_cursor)) }
    });
    let entry = |resource: Resource| ResourceEntry {
        server: server.to_owned(),
        uri: resource.uri,
        title: resource.title.unwrap_or(resource.name),
    };
    Ok(listed.await?.entries.into_iter().map(entry).collect())
}

pub(crate) async fn list_prompts(
    connection: &Connection,
    server: &str,
) -> Result<Vec<PromptEntry>, ServiceError> {
    let peer = connection.peer();
    if peer.peer_info().is_none_or(|info| info.capabilities.prompts.is_none()) {
        return Ok(Vec::new());
    }
    let listed = all_pages(MAX_LISTED, |page| {
        let peer = peer.clone();
        async move { peer.list_prompts(page).await.map(|page| (page.prompts, page.next_cursor)) }
    });
    let entry = |prompt: Prompt| PromptEntry {
        server: server.to_owned(),
        name: prompt.name,
        description: prompt.description.or(prompt.title).unwrap_or_default(),
        parameters: prompt.arguments.unwrap_or_default().into_iter().map(parameter).collect(),
    };
    Ok(listed.await?.entries.into_iter().map(entry).collect())
}

fn parameter(argument: PromptArgument) -> PromptParameter {
    PromptParameter { is_required: argument.required == Some(true), name: argument.name }
}

impl CachedContentList {
    fn lock(&self) -> MutexGuard<'_, CachedList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
