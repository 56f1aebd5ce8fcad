//! N3: a node whose address is of no use is named.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::{Node, Site, eventually, told};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Something listens at the address of a node, but refuses the token of the others: `doctor` says so, and what to do.
#[test]
fn an_address_that_refuses_the_cluster_token_is_named() {
    let site = Site::new(&json!(["One."]));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4_096]);
            let _ = connection
                .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    std::fs::create_dir(site.path("ash")).unwrap();
    let config =
        format!("[journal]\nurl = \"{}\"\n[node]\nid = \"ash\"\naddress = \"{address}\"\n", site.url());
    std::fs::write(site.path("ash/config.toml"), config).unwrap();
    let ash = Node::start(site.command("ash", &["serve", "--no-http"]), "ash");
    eventually("ash joins", || site.node("ash")["state"] == "live");
    let mut with_token = site.command("birch", &["doctor"]);

    let (_, without, _) = site.run("birch", &["doctor"]);
    let (code, with, _) = told(&with_token.env("LONGHAUL_CLUSTER_TOKEN", TOKEN).output().unwrap());

    assert!(!without.contains("can't be reached"), "nodes without a token use no addresses: {without}");
    assert_eq!(code, 1, "{with}");
    assert!(with.contains(&format!("ash can't be reached at {address}")), "{with}");
    assert!(
        with.contains("does not accept the cluster token") && with.contains("same cluster token"),
        "{with}"
    );
    assert!(!with.contains(TOKEN), "{with}");
    drop(ash);
}
