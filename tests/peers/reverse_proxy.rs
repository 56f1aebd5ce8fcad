//! The server behind nginx, with the snippet of `docs/server.md` as it stands there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::http_server::{HttpServer, PUBLIC_NAME, TOKEN};
use crate::installed::peer;
use crate::servers::TEST_TIMEOUT;
use crate::servers::free_port;

/// nginx on loopback, in front of a server.
struct Proxy {
    port: u16,
    process: Child,
}

impl Proxy {
    fn start(server: &HttpServer) -> Self {
        let port = free_port();
        let folder = server.desk.work();
        let page = include_str!("../../docs/server.md");
        let snippet = page.split("# nginx\n").nth(1).unwrap().split("```").next().unwrap();
        let snippet = snippet
            .replace("listen 443 ssl;", &format!("listen 127.0.0.1:{port};"))
            .replace("http://127.0.0.1:7171", &server.url());
        assert!(snippet.contains(&server.url()) && snippet.contains(&port.to_string()), "{snippet}");
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/nginx-{kind};\n", folder.display()))
            .concat();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {0}/nginx.pid;\nerror_log {0}/nginx-error.log;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}{snippet}}}\n",
            folder.display()
        );
        std::fs::write(folder.join("nginx.conf"), config).unwrap();
        let mut command = Command::new(peer("nginx"));
        command.arg("-c").arg(folder.join("nginx.conf")).arg("-e").arg(folder.join("nginx-error.log"));
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let proxy = Self { port, process };
        let deadline = Instant::now() + TEST_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        proxy
    }

    /// Sends a request as a client does that knows only the public name.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {PUBLIC_NAME}:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{headers}\r\n",
            self.port,
            body.len()
        );
        (&stream).write_all((head + body).as_bytes()).unwrap();
        stream
    }

    /// The whole answer to a request with the token.
    fn answer(&self, method: &str, path: &str, body: &str) -> String {
        let mut answer = String::new();
        let token = format!("Authorization: Bearer {TOKEN}\r\n");
        self.send(method, path, &token, body).read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// H2, H4, H5: events come through as they happen, answers of `/v1` are streamed, a page behind another port signs in, and a
/// body that is too large gets the server's own answer.
#[test]
#[ignore = "needs scripts/peers"]
fn the_nginx_of_the_docs_passes_on_streams_sign_in_and_errors() {
    let server = HttpServer::start();
    let proxy = Proxy::start(&server);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");

    let made = proxy.answer("POST", "/api/sessions", r#"{"key":"a"}"#);
    let mut events = BufReader::new(proxy.send("GET", "/api/sessions/a/events", &token, "")).lines();
    let mut wait_for = |what: &str| events.find(|line| line.as_ref().unwrap().contains(what)).unwrap();
    wait_for(": open").unwrap();
    let sent = proxy.answer("POST", "/api/sessions/a/inputs", r#"{"text":"go"}"#);
    wait_for("text_delta").unwrap();
    wait_for("turn_ended").unwrap();
    let chat = r#"{"model":"longhaul","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let streamed = proxy.answer("POST", "/v1/chat/completions", chat);
    let page = format!("Origin: http://{PUBLIC_NAME}:{}\r\nSec-Fetch-Site: same-origin\r\n", proxy.port);
    let mut signed_in = String::new();
    let sign_in = format!(r#"{{"token":"{TOKEN}"}}"#);
    proxy.send("POST", "/api/login", &page, &sign_in).read_to_string(&mut signed_in).unwrap();
    let too_large = proxy.answer("POST", "/api/login", &format!(r#"{{"token":"{}"}}"#, "x".repeat(33 << 20)));

    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    assert!(sent.starts_with("HTTP/1.1 202"), "{sent}");
    assert!(streamed.contains("text/event-stream") && streamed.contains("data: [DONE]"), "{streamed}");
    assert!(signed_in.starts_with("HTTP/1.1 204") && signed_in.contains("longhaul="), "{signed_in}");
    assert!(too_large.starts_with("HTTP/1.1 413") && too_large.contains("body_too_large"), "{too_large}");
}
