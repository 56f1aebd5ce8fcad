//! The connection to one editor: lines in, lines out.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use longhaul_agent::Runtime;
use longhaul_jsonrpc::{
    BadMessage, Line, LineReader, MAX_LINE_BYTES, Message, Params, parse_message, write_lines,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::directory::{find_session, folder_of, list_sessions, new_key, work_folder};
use crate::editor_servers::EditorServers;
use crate::error::{Error, Result};
use crate::options::{Choice, known_models, parse_choice, parse_mode};
use crate::prompt::message_of;
use crate::session::{ChoiceAnswer, OpenRequest, SessionCommand, SessionSetup, SessionTask};
use crate::wire::params::{
    CancelRequestParams, ClientFeatures, InitializeParams, ListSessionsParams, OpenSessionParams,
    PromptParams, SessionParams, SetConfigOptionParams, SetModeParams,
};
use crate::wire::reply::initialize_reply;
use crate::wire::rpc::{Outbox, parse_params};
use crate::wire::{ProtocolVersion, version2};

/// Opens the runtime for sessions in this folder. The error is shown in the editor.
pub type OpenRuntime<'a> =
    Box<dyn Fn(PathBuf) -> Pin<Box<dyn Future<Output = std::result::Result<Runtime, String>> + 'a>> + 'a>;

/// How long the tasks of the sessions may take to carry out what the editor sent before its input ended.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long the last answers may take to write.
const WRITE_GRACE: Duration = Duration::from_secs(1);

/// Serves an editor until its input ends or it takes no more output. Returns the keys of the sessions whose turn is not over.
///
/// The runtime is opened for the first session, with that session's folder: what is wrong with the config is then an error that the editor
/// shows, and the project's config counts. The caller shuts the runtime down, also if it drops this future.
pub async fn serve(
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    open_runtime: OpenRuntime<'_>,
) -> Vec<String> {
    let (outbox, lines) = Outbox::new();
    let writing = tokio::spawn(write_lines(lines, output));
    let (models_sender, mut models) = mpsc::channel(1);
    let mut connection = Connection {
        outbox: outbox.clone(),
        open_runtime,
        runtime: None,
        runtime_folder: PathBuf::new(),
        features: None,
        sessions: HashMap::new(),
        tasks: JoinSet::new(),
        known_models: Vec::new(),
        models_sender,
    };
    let mut reader = LineReader::new(input, MAX_LINE_BYTES);
    loop {
        tokio::select! {
            line = reader.next() => match line {
                Ok(Some(line)) => connection.handle_line(line).await,
                // An input that can't be read any more has ended.
                Ok(None) | Err(_) => break,
            },
            Some(models) = models.recv() => connection.set_known_models(models),
            () = outbox.closed() => break,
        }
    }
    let unfinished = connection.end().await;
    drop(outbox);
    let _ = tokio::time::timeout(WRITE_GRACE, writing).await;
    unfinished
}

struct Connection<'a> {
    outbox: Outbox,
    open_runtime: OpenRuntime<'a>,
    runtime: Option<Runtime>,
    /// The folder whose config the runtime has.
    runtime_folder: PathBuf,
    /// What the editor can do; `None` before `initialize`.
    features: Option<ClientFeatures>,
    /// By the editor's id.
    sessions: HashMap<String, OpenSession>,
    tasks: JoinSet<()>,
    known_models: Vec<String>,
    models_sender: mpsc::Sender<Vec<String>>,
}

struct OpenSession {
    key: String,
    commands: mpsc::UnboundedSender<SessionCommand>,
}

impl Connection<'_> {
    async fn handle_line(&mut self, line: Line) {
        // Tasks of closed sessions.
        while self.tasks.try_join_next().is_some() {}
        let message = match line {
            Line::Text(line) => parse_message(&line),
            Line::TooLong => Err(Box::new(BadMessage::too_long())),
        };
        match message {
            Ok(Message::Request { id, method, params }) => {
                if let Err(error) = self.request(&id, &method, &params).await {
                    self.outbox.reply::<Value>(&id, Err(error)).await;
                }
            }
            // A notification has no answer, whatever is wrong with it.
            Ok(Message::Notification { method, params }) => drop(self.notification(&method, &params)),
            Ok(Message::Reply { id, result }) => self.outbox.settle(&id, &result),
            Err(bad) => self.outbox.reply::<Value>(&bad.id, Err(bad.error.into())).await,
        }
    }

    /// Carries out a request. It answers itself, or its session does.
    async fn request(&mut self, id: &Value, method: &str, params: &Params) -> Result<()> {
        if method == "initialize" {
            let params: InitializeParams = parse_params(params, method)?;
            let features = ClientFeatures::of(&params);
            self.features = Some(features);
            let reply = match features.version {
                ProtocolVersion::V1 => initialize_reply(),
                ProtocolVersion::V2 => version2::initialize_reply(),
            };
            self.outbox.reply(id, Ok(reply)).await;
            return Ok(());
        }
        let Some(features) = self.features else {
            return Err(Error::NotInitialized { method: method.to_owned() });
        };
        match method {
            "authenticate" | "session/load" | "session/set_mode"
                if features.version == ProtocolVersion::V2 =>
            {
                return Err(Error::UnknownMethod { method: method.to_owned() });
            }
            // There is nothing to sign in to.
            "authenticate" => self.outbox.reply(id, Ok(json!({}))).await,
            "session/new" | "session/load" | "session/resume" => {
                return self.open_session(id, method, parse_params(params, method)?).await;
            }
            "session/list" => {
                let params: ListSessionsParams = parse_params(params, method)?;
                let folder = params.cwd.clone();
                let journal = self.runtime_for(folder.as_deref()).await?.journal();
                self.outbox.reply(id, list_sessions(&*journal, &params).await).await;
            }
            "session/prompt" => {
                let PromptParams { session_id, prompt } = parse_params(params, method)?;
                let session = self.session(&session_id)?;
                let message = message_of(prompt)?;
                session.send(SessionCommand::Prompt { id: id.clone(), message })?;
            }
            "session/set_mode" => {
                let SetModeParams { session_id, mode_id } = parse_params(params, method)?;
                let choice = Choice::Mode(parse_mode(method, &mode_id)?);
                let (id, answer) = (id.clone(), ChoiceAnswer::Nothing);
                self.session(&session_id)?.send(SessionCommand::Choose { id, choice, answer })?;
            }
            "session/set_config_option" => {
                let params: SetConfigOptionParams = parse_params(params, method)?;
                let choice = parse_choice(method, &params)?;
                let (id, answer) = (id.clone(), ChoiceAnswer::ConfigOptions);
                self.session(&params.session_id)?.send(SessionCommand::Choose { id, choice, answer })?;
            }
            "session/close" => {
                let SessionParams { session_id } = parse_params(params, method)?;
                self.session(&session_id)?.send(SessionCommand::Close { id: id.clone() })?;
                self.sessions.remove(&session_id);
            }
            _ => return Err(Error::UnknownMethod { method: method.to_owned() }),
        }
        Ok(())
    }

    fn notification(&self, method: &str, params: &Params) -> Result<()> {
        match method {
            "session/cancel" => {
                let SessionParams { session_id } = parse_params(params, method)?;
                self.session(&session_id)?.send(SessionCommand::Cancel)
            }
            // Only the session with this prompt acts on it.
            "$/cancel_request" => {
                let CancelRequestParams { request_id } = parse_params(params, method)?;
                let cancel = || SessionCommand::CancelPrompt { id: request_id.clone() };
                self.sessions.values().try_for_each(|session| session.send(cancel()))
            }
            _ => Ok(()),
        }
    }

    fn session(&self, id: &str) -> Result<&OpenSession> {
        self.sessions.get(id).ok_or_else(|| Error::UnknownSession { session: id.to_owned() })
    }

    /// Opens a session and starts its task, which answers the request.
    async fn open_session(&mut self, id: &Value, method: &str, params: OpenSessionParams) -> Result<()> {
        let cwd = work_folder(&params.cwd)?;
        let mut ignored = params.ignored();
        let runtime = self.runtime_for(Some(&cwd)).await?;
        let EditorServers { servers, warnings } =
            EditorServers::parse(params.mcp_servers(), runtime.config());
        ignored.extend(warnings);
        ignored.extend(self.other_config(&runtime, &cwd));
        let (id, known_models) = (id.clone(), self.known_models.clone());
        let (editor_id, key, work_dir, request) = if method == "session/new" {
            let key = new_key(&cwd);
            (key.clone(), key, cwd, OpenRequest::New { id, ignored })
        } else {
            let name = params.session_id.ok_or_else(|| Error::params(method, "missing field `sessionId`"))?;
            let journal = runtime.journal();
            let entry = find_session(&*journal, &name).await?;
            let folder = folder_of(&*journal, entry.id).await?.unwrap_or_else(|| cwd.clone());
            if folder != cwd {
                ignored.push(format!("the session works in {}, where it began", folder.display()));
            }
            let request = match (method, &params.replay_from) {
                ("session/load", _) | (_, Some(_)) => OpenRequest::Load { id, ignored },
                _ => OpenRequest::Resume { id, ignored },
            };
            (name, entry.key, folder, request)
        };
        let setup = SessionSetup {
            editor_id: editor_id.clone(),
            session: runtime.session(&key).await?,
            runtime,
            work_dir,
            outbox: self.outbox.clone(),
            features: self.features.unwrap_or_default(),
            known_models,
            servers,
        };
        let task = SessionTask::new(setup).await?;
        let (commands, receiver) = mpsc::unbounded_channel();
        self.tasks.spawn(task.run(request, receiver));
        // If the session was open already, its first task ends once its command channel is dropped, here.
        self.sessions.insert(editor_id, OpenSession { key, commands });
        Ok(())
    }

    /// The runtime, opened for this folder if there is none.
    async fn runtime_for(&mut self, folder: Option<&Path>) -> Result<Runtime> {
        if let Some(runtime) = &self.runtime {
            return Ok(runtime.clone());
        }
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => std::env::current_dir().map_err(|error| Error::Open(error.to_string()))?,
        };
        let runtime = (self.open_runtime)(folder.clone()).await.map_err(Error::Open)?;
        self.runtime_folder = folder;
        self.runtime = Some(runtime.clone());
        // Model servers are asked beside the session: they may take seconds to answer.
        let (config, models) = (runtime.config().clone(), self.models_sender.clone());
        tokio::spawn(async move { models.send(known_models(&config).await).await });
        Ok(runtime)
    }

    /// A warning that the project config of another folder is in use.
    fn other_config(&self, runtime: &Runtime, cwd: &Path) -> Option<String> {
        let is_other = cwd != self.runtime_folder && !cwd.starts_with(&self.runtime_folder);
        let has_file = |folder: &Path| folder.join("longhaul.toml").is_file();
        let counts = is_other && (has_file(cwd) || has_file(&runtime.config().work_dir));
        counts.then(|| {
            let folder = self.runtime_folder.display();
            format!("this connection uses the config of {folder}; start another agent to use this folder's")
        })
    }

    /// Tells all sessions which models can be used.
    fn set_known_models(&mut self, models: Vec<String>) {
        for session in self.sessions.values().filter(|_| !models.is_empty()) {
            let _ = session.send(SessionCommand::KnownModels(models.clone()));
        }
        self.known_models = models;
    }

    /// Ends all session tasks, and says which sessions have unfinished work.
    async fn end(mut self) -> Vec<String> {
        let mut unfinished = Vec::new();
        // Commands that were sent before the end of the input are carried out first.
        let keys: Vec<String> = self.sessions.drain().map(|(_, session)| session.key).collect();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(END_GRACE, ended).await;
        self.tasks.abort_all();
        let Some(runtime) = self.runtime else { return unfinished };
        for key in keys {
            // A session that can't be read any more can't go on either.
            if let Ok(session) = runtime.session(&key).await
                && session.is_unfinished().await.unwrap_or(false)
            {
                unfinished.push(key);
            }
        }
        unfinished
    }
}

impl OpenSession {
    fn send(&self, command: SessionCommand) -> Result<()> {
        self.commands.send(command).map_err(|_| Error::SessionEnded)
    }
}
