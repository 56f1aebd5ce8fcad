//! MCP servers for tests: real programs that speak the protocol by themselves, in Python, so that they share no code with the client.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Writes the server's program into a folder, as `server.py`. Its beginning says what it can do.
pub fn write_mcp_server(folder: &Path) {
    std::fs::write(folder.join("server.py"), include_str!("mcp_server.py"))
        .expect("the folder can be written");
}

/// An MCP server over HTTP, on loopback. It ends when it is dropped, and with the process of the test.
pub struct McpHttpServer {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl McpHttpServer {
    /// Starts it in a folder, with these arguments. The beginning of its program says what it can do.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let program = folder.join("mcp_http_server.py");
        std::fs::write(&program, include_str!("mcp_http_server.py")).expect("the folder can be written");
        let mut process = Command::new("python3")
            .arg(program)
            .args(arguments)
            .arg("--end-on-stdin")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 can be started");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("its output can be read");
        let port = line.trim().parse().expect("its first line is its port");
        Self { process, port, folder: folder.to_owned() }
    }

    /// Where it speaks MCP.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it was asked so far, one line each.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("http.log")).unwrap_or_default()
    }

    /// All access and renewal tokens that it has given.
    pub fn given_tokens(&self) -> Vec<String> {
        let log = self.log();
        let given = log.lines().filter_map(|line| line.strip_prefix("gave "));
        given.flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}

impl Drop for McpHttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
