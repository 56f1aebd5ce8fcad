//! A server on a free port of loopback, with its own home and a scripted model.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::model::{Model, ScriptedModel};
use longhaul_agent::{Config, Runtime, RuntimeBuilder};
use longhaul_server::{Scope, Server, ServerOptions, TokenStore};
use longhaul_testkit::{FaultyJournal, TestHome};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::net::TcpListener;

/// The token that requests have unless a test sets another one.
pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-test";

/// A running server and what it serves.
pub(crate) struct TestServer {
    pub(crate) home: TestHome,
    pub(crate) runtime: Runtime,
    server: Server,
    model: Arc<dyn Model>,
    client: reqwest::Client,
}

impl TestServer {
    /// A server whose model plays these answers: a JSON list as in `docs/scripted.md`.
    pub(crate) async fn with_script(script: &str) -> Self {
        Self::with_model(Arc::new(ScriptedModel::from_json(script).unwrap())).await
    }

    /// The same with a changed config.
    pub(crate) async fn with_settings(script: &str, change: impl FnOnce(&mut Config)) -> Self {
        let model = Arc::new(ScriptedModel::from_json(script).unwrap());
        Self::start(TestHome::new(), model, &[], test_options(), change).await
    }

    /// The same with other settings of the server.
    pub(crate) async fn with_options(script: &str, options: ServerOptions) -> Self {
        let model = Arc::new(ScriptedModel::from_json(script).unwrap());
        Self::start(TestHome::new(), model, &[], options, |_| ()).await
    }

    pub(crate) async fn with_model(model: Arc<dyn Model>) -> Self {
        Self::start(TestHome::new(), model, &[], test_options(), |_| ()).await
    }

    /// A server with other settings, which never calls its model.
    pub(crate) async fn configured(options: ServerOptions) -> Self {
        let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
        Self::start(TestHome::new(), model, &[], options, |_| ()).await
    }

    /// A server that also accepts these tokens. Each is its own name.
    pub(crate) async fn with_tokens(script: &str, tokens: &[(&str, Scope)]) -> Self {
        Self::start(
            TestHome::new(),
            Arc::new(ScriptedModel::from_json(script).unwrap()),
            tokens,
            test_options(),
            |_| (),
        )
        .await
    }

    /// A server of this home, which never calls its model.
    pub(crate) async fn in_home(home: TestHome) -> Self {
        let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
        Self::start(home, model, &[], test_options(), |_| ()).await
    }

    /// The same, which was also given this token, with all rights.
    pub(crate) async fn in_home_with_token(home: TestHome, token: &str) -> Self {
        let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
        Self::start(home, model, &[(token, Scope::Admin)], test_options(), |_| ()).await
    }

    /// A server that was also given this token, with all rights.
    pub(crate) async fn with_given_token(token: &str, options: ServerOptions) -> Self {
        let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
        Self::start(TestHome::new(), model, &[(token, Scope::Admin)], options, |_| ()).await
    }

    /// The next server of the same home, after a proper end of this one. It listens on another port.
    pub(crate) async fn restart(self) -> Self {
        let Self { home, runtime, server, model, .. } = self;
        server.shutdown().await;
        runtime.shutdown().await.unwrap();
        Self::start(home, model, &[], test_options(), |_| ()).await
    }

    async fn start(
        home: TestHome,
        model: Arc<dyn Model>,
        other_tokens: &[(&str, Scope)],
        options: ServerOptions,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = home.config();
        change(&mut config);
        let runtime = Runtime::with_model(config, model.clone()).await.unwrap();
        Self::serve(home, runtime, model, other_tokens, options).await
    }

    /// A server whose journal can be made slow or faulty.
    pub(crate) async fn with_faulty_journal(script: &str) -> (Self, Arc<FaultyJournal>) {
        let (home, model) = (TestHome::new(), Arc::new(ScriptedModel::from_json(script).unwrap()));
        let journal = FaultyJournal::new(home.journal().await, None);
        let builder = RuntimeBuilder::new(home.config()).model(model.clone()).journal(journal.clone());
        let runtime = builder.open().await.unwrap();
        (Self::serve(home, runtime, model, &[], test_options()).await, journal)
    }

    async fn serve(
        home: TestHome,
        runtime: Runtime,
        model: Arc<dyn Model>,
        other_tokens: &[(&str, Scope)],
        options: ServerOptions,
    ) -> Self {
        runtime.start().await.unwrap();
        let mut tokens = TokenStore::default();
        tokens.insert("test", Scope::Admin, ADMIN_TOKEN);
        for (token, scope) in other_tokens {
            tokens.insert(token, *scope, token);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server::start(listener, runtime.clone(), tokens, &options).unwrap();
        // reqwest is built without a provider of its own. A second test of this process finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { home, runtime, server, model, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// A request without a token.
    pub(crate) fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    /// A request with the admin token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.anonymous(method, path).header("authorization", format!("Bearer {ADMIN_TOKEN}"))
    }

    /// The status and the JSON of the answer to a GET.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        json_answer(self.request(Method::GET, path)).await
    }

    /// The text of the answer to a GET.
    pub(crate) async fn text(&self, path: &str) -> String {
        self.request(Method::GET, path).send().await.unwrap().text().await.unwrap()
    }

    /// Asks until the answer is as wanted.
    pub(crate) async fn poll(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let polling = async {
            loop {
                let (_, answer) = self.get(path).await;
                if is_wanted(&answer) {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), polling).await.expect("the answer that is wanted")
    }

    /// The status and the JSON of the answer to a POST with this body.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        json_answer(request.body(body.to_string())).await
    }

    pub(crate) async fn shutdown(self) {
        self.server.shutdown().await;
        self.runtime.shutdown().await.unwrap();
    }
}

/// The settings of a server unless a test sets others.
pub(crate) fn test_options() -> ServerOptions {
    ServerOptions { max_body_bytes: 1 << 20, ..ServerOptions::default() }
}

/// The status and the JSON of an answer; `Null` if the body is empty.
pub(crate) async fn json_answer(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.bytes().await.unwrap();
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (status, value)
}
