//! An MCP server for tests: a real program that speaks the protocol by itself, in Python, so that it shares no code with the client.

use std::path::Path;

/// Writes the server's program into a folder, as `server.py`. Its beginning says what it can do.
pub fn write_mcp_server(folder: &Path) {
    std::fs::write(folder.join("server.py"), include_str!("mcp_server.py"))
        .expect("the folder can be written");
}
