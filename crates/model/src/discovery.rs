//! Discovery: what a server reports about its models, and which servers run on this machine. A failure here is not an
//! error: the facts just stay unknown.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Protocol;
use crate::endpoint::Timeouts;
use crate::transport::{HttpRequest, HttpResponse, Transport, is_loopback};

/// A server must describe a model within this time. The first turn waits for it.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// A local server must answer a probe within this time. The start of the program waits for it.
const LOCAL_PROBE_TIMEOUT: Duration = Duration::from_millis(300);
/// Longer replies are ignored.
const MAX_REPLY_BYTES: usize = 1024 * 1024;

/// The usual ports of local model servers.
pub const LOCAL_SERVER_PORTS: [(&str, u16); 4] =
    [("ollama", 11434), ("llamacpp", 8080), ("lmstudio", 1234), ("vllm", 8000)];

#[derive(Debug, Clone, Copy)]
pub struct ServerQuery<'a> {
    /// The provider's name. It decides how the server is asked.
    pub provider: &'a str,
    /// The protocol. It decides how the key is sent.
    pub protocol: Protocol,
    pub base_url: &'a str,
    pub key: Option<&'a str>,
}

impl ServerQuery<'_> {
    fn models_url(&self, path: &str) -> String {
        // These two send the list in pages, other servers send it whole.
        let query = match self.protocol {
            Protocol::Anthropic => "?limit=1000",
            Protocol::Gemini => "?pageSize=1000",
            Protocol::OpenaiChat | Protocol::OpenaiResponses => "",
        };
        format!("{}{path}{query}", self.base_url.trim_end_matches('/'))
    }

    fn headers(&self) -> Vec<(String, String)> {
        let Some(key) = self.key else { return vec![] };
        let headers = match self.protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => {
                vec![("authorization", format!("Bearer {key}"))]
            }
            Protocol::Anthropic => {
                vec![("x-api-key", key.to_owned()), ("anthropic-version", "2023-06-01".to_owned())]
            }
            Protocol::Gemini => vec![("x-goog-api-key", key.to_owned())],
        };
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// What a server reports about a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiscoveredCapabilities {
    pub window: Option<u64>,
    pub tools: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    pub provider: String,
    pub base_url: String,
    pub models: Vec<String>,
}

/// Asks a server about a model.
pub async fn discover_capabilities(
    transport: &dyn Transport,
    server: &ServerQuery<'_>,
    model: &str,
) -> Option<DiscoveredCapabilities> {
    query_model(transport, server, model).await.0
}

/// Like [`discover_capabilities`], but also says whether the reply is final. It is not if the server did not answer
/// or has not loaded the model yet.
pub(crate) async fn query_model(
    transport: &dyn Transport,
    server: &ServerQuery<'_>,
    model: &str,
) -> (Option<DiscoveredCapabilities>, bool) {
    let asking = ModelQuery {
        transport,
        server,
        model,
        reached: AtomicBool::new(false),
        may_change: AtomicBool::new(false),
    };
    let found = match server.provider {
        "ollama" => asking.ollama().await,
        "llamacpp" => asking.first_window([QueryMethod::LlamaCpp, QueryMethod::Models]).await,
        "lmstudio" => asking.first_window([QueryMethod::LmStudio, QueryMethod::Models]).await,
        "vllm" | "sglang" => asking.models("/models").await,
        _ if is_loopback(server.base_url) => asking.unknown_local_server().await,
        _ => asking.models("/models").await,
    };
    let is_all = asking.reached.load(Ordering::SeqCst) && !asking.may_change.load(Ordering::SeqCst);
    ((found != DiscoveredCapabilities::default()).then_some(found), is_all)
}

/// Probes this machine for model servers, all ports at once.
pub async fn find_local_servers(transport: &dyn Transport, ports: &[(&str, u16)]) -> Vec<LocalServer> {
    let asked = ports.iter().map(|(provider, port)| async move {
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let server = ServerQuery { provider, protocol: Protocol::OpenaiChat, base_url: &base_url, key: None };
        let models = list_models(transport, &server).await?;
        Some(LocalServer { provider: (*provider).to_owned(), base_url, models })
    });
    join_all(asked.collect()).await.into_iter().flatten().collect()
}

/// The names of the models that a server offers. `None` if it does not list any.
pub(crate) async fn list_models(transport: &dyn Transport, server: &ServerQuery<'_>) -> Option<Vec<String>> {
    let timeout = if is_loopback(server.base_url) { LOCAL_PROBE_TIMEOUT } else { DESCRIBE_TIMEOUT };
    let answer = fetch(transport, get(server.models_url("/models"), server.headers()), timeout).await??;
    let models = listed_models(&answer)?.iter().filter_map(|entry| names_of(entry).next());
    // A name is shown in lines and sent in lists, so one with a line break or the like names no model.
    let is_name = |name: &&str| !name.is_empty() && !name.chars().any(char::is_control);
    Some(models.filter(is_name).map(str::to_owned).collect())
}

#[derive(Clone, Copy)]
enum QueryMethod {
    LlamaCpp,
    LmStudio,
    Models,
}

struct ModelQuery<'a> {
    transport: &'a dyn Transport,
    server: &'a ServerQuery<'a>,
    model: &'a str,
    reached: AtomicBool,
    /// The reply may change once the model is loaded.
    may_change: AtomicBool,
}

impl ModelQuery<'_> {
    /// Tries the methods until one reports the window.
    async fn first_window<const N: usize>(&self, methods: [QueryMethod; N]) -> DiscoveredCapabilities {
        let mut found = DiscoveredCapabilities::default();
        for method in methods {
            let more = match method {
                QueryMethod::LlamaCpp => self.llama_cpp().await,
                QueryMethod::LmStudio => self.models_at(format!("{}/api/v0/models", self.root())).await,
                QueryMethod::Models => self.models("/models").await,
            };
            found = DiscoveredCapabilities { window: more.window, tools: found.tools.or(more.tools) };
            if found.window.is_some() {
                break;
            }
        }
        found
    }

    /// Asks a local server of unknown kind. Its model list tells the kind, and then it is asked in its own way.
    async fn unknown_local_server(&self) -> DiscoveredCapabilities {
        let listed_entry = self.listed_entry(self.server.models_url("/models")).await;
        let owner =
            listed_entry.as_ref().and_then(|entry| entry.get("owned_by")?.as_str()).unwrap_or_default();
        let in_its_own_way = match owner {
            "llamacpp" => self.llama_cpp().await,
            "library" => self.ollama().await,
            _ => DiscoveredCapabilities::default(),
        };
        let said = listed_entry.as_ref().map(capabilities_of_entry).unwrap_or_default();
        DiscoveredCapabilities {
            window: in_its_own_way.window.or(said.window),
            tools: in_its_own_way.tools.or(said.tools),
        }
    }

    /// llama.cpp reports the context of each slot, which is what a request gets.
    async fn llama_cpp(&self) -> DiscoveredCapabilities {
        let answer = self.get(format!("{}/props", self.root())).await.unwrap_or_default();
        DiscoveredCapabilities {
            window: tokens(&answer, "/default_generation_settings/n_ctx"),
            tools: answer.pointer("/chat_template_caps/supports_tools").and_then(Value::as_bool),
        }
    }

    /// Ollama reports the configured context, the maximum, and, once the model is loaded, the actual one.
    async fn ollama(&self) -> DiscoveredCapabilities {
        let body = json!({"model": self.model});
        let url = format!("{}/api/show", self.root());
        let shown = self.fetch(post(url, self.server.headers(), &body)).await.unwrap_or_default();
        let parameters = shown.get("parameters").and_then(Value::as_str).unwrap_or_default();
        let tools = shown.get("capabilities").and_then(|capabilities| list_contains(capabilities, "tools"));
        let made_with =
            parameters.lines().find_map(|line| match *line.split_whitespace().collect::<Vec<_>>() {
                ["num_ctx", count] => count.parse().ok().filter(|count| *count > 0),
                _ => None,
            });
        let window = match made_with {
            Some(count) => Some(count),
            None => self.loaded_by_ollama().await.or_else(|| {
                // Ollama may load the model with a much smaller context, and reports that only afterwards.
                self.may_change.store(true, Ordering::SeqCst);
                let facts = shown.get("model_info")?.as_object()?;
                facts.iter().find(|(key, _)| key.ends_with(".context_length"))?.1.as_u64()
            }),
        };
        DiscoveredCapabilities { window, tools }
    }

    async fn loaded_by_ollama(&self) -> Option<u64> {
        let answer = self.get(format!("{}/api/ps", self.root())).await?;
        let wanted = with_tag(self.model);
        let named = |entry: &&Value| {
            ["model", "name"]
                .iter()
                .any(|key| entry[*key].as_str().is_some_and(|name| with_tag(name) == wanted))
        };
        tokens(answer.get("models")?.as_array()?.iter().find(named)?, "/context_length")
    }

    async fn models(&self, path: &str) -> DiscoveredCapabilities {
        self.models_at(self.server.models_url(path)).await
    }

    async fn models_at(&self, url: String) -> DiscoveredCapabilities {
        self.listed_entry(url).await.as_ref().map(capabilities_of_entry).unwrap_or_default()
    }

    async fn listed_entry(&self, url: String) -> Option<Value> {
        let answer = self.get(url).await?;
        entry_of(&answer, self.model).cloned()
    }

    /// The base URL without `/v1`: servers have their own endpoints there.
    fn root(&self) -> &str {
        let base_url = self.server.base_url.trim_end_matches('/');
        base_url.strip_suffix("/v1").unwrap_or(base_url)
    }

    async fn get(&self, url: String) -> Option<Value> {
        self.fetch(get(url, self.server.headers())).await
    }

    async fn fetch(&self, outgoing: HttpRequest) -> Option<Value> {
        let answered = fetch(self.transport, outgoing, DESCRIBE_TIMEOUT).await;
        self.reached.fetch_or(answered.is_some(), Ordering::SeqCst);
        answered.flatten()
    }
}

fn capabilities_of_entry(entry: &Value) -> DiscoveredCapabilities {
    // The window of the loaded model comes before its possible maximum, and the served window before the one from
    // training.
    const WINDOWS: [&str; 9] = [
        "/loaded_context_length",
        "/meta/n_ctx",
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
        "/inputTokenLimit",
        "/meta/n_ctx_train",
    ];
    DiscoveredCapabilities {
        window: WINDOWS.into_iter().find_map(|place| tokens(entry, place)),
        tools: entry.get("supported_parameters").and_then(|parameters| list_contains(parameters, "tools")),
    }
}

/// The entry of a model in the list.
fn entry_of<'a>(answer: &'a Value, model: &str) -> Option<&'a Value> {
    let list = listed_models(answer)?;
    // A server with one model answers with it, whatever name the request has.
    let only = if let [one] = &list[..] { Some(one) } else { None };
    list.iter().find(|entry| names_of(entry).any(|name| name == model)).or(only)
}

/// The list of models, wherever the server puts it.
fn listed_models(answer: &Value) -> Option<&Vec<Value>> {
    ["data", "models"].iter().find_map(|key| answer.get(key)).unwrap_or(answer).as_array()
}

/// The names under which a server lists a model.
fn names_of(entry: &Value) -> impl Iterator<Item = &str> {
    let names = ["id", "name"].iter().filter_map(|key| entry.get(key)?.as_str());
    names.map(|name| name.strip_prefix("models/").unwrap_or(name))
}

/// A positive count at this JSON pointer.
fn tokens(value: &Value, place: &str) -> Option<u64> {
    value.pointer(place)?.as_u64().filter(|count| *count > 0)
}

fn list_contains(list: &Value, word: &str) -> Option<bool> {
    Some(list.as_array()?.iter().any(|known| known == word))
}

/// Ollama's name of a model with its default tag.
fn with_tag(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}

fn get(url: String, headers: Vec<(String, String)>) -> HttpRequest {
    // The same as for requests to a model, so that they can use this connection. The reply is awaited for a shorter time.
    HttpRequest { url, headers, body: None, connect_within: Timeouts::HOSTED.connect }
}

fn post(url: String, mut headers: Vec<(String, String)>, body: &Value) -> HttpRequest {
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    HttpRequest { body: Some(body.to_string().into_bytes()), ..get(url, headers) }
}

/// The JSON reply, if it comes in time with status 200. The outer `None` means that the server did not answer.
async fn fetch(transport: &dyn Transport, outgoing: HttpRequest, timeout: Duration) -> Option<Option<Value>> {
    let answer = async {
        let incoming = transport.send(outgoing).await.ok()?;
        // The server is busy or still loading, so a later try may succeed.
        if incoming.status == 429 || incoming.status >= 500 {
            return None;
        }
        let status = incoming.status;
        // Read also if it is an error: then the connection can be used for the next request.
        let body = read(incoming).await;
        if status != 200 {
            return Some(None);
        }
        Some(body.and_then(|body| serde_json::from_slice(&body).ok()))
    };
    tokio::time::timeout(timeout, answer).await.ok()?
}

async fn read(mut incoming: HttpResponse) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    while let Some(bytes) = incoming.body.next().await.ok()? {
        if read.len() + bytes.len() > MAX_REPLY_BYTES {
            return None;
        }
        read.extend(bytes);
    }
    Some(read)
}

/// Runs all futures concurrently. The outputs are in the order of the futures.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in waiting.iter_mut().zip(&mut done) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
