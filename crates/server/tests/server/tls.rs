//! H5: TLS from a certificate and a key, and what is said when they are wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_server::{ServerOptions, Tls};

use crate::attacks::exchange;
use crate::test_server::{ADMIN_TOKEN, TestServer};

const CERTIFICATE: &str = include_str!("fixtures/cert.pem");
const KEY: &str = include_str!("fixtures/key.pem");
const OTHER_KEY: &str = include_str!("fixtures/other-key.pem");

fn write(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// H5: a page under TLS gets a cookie that is never sent in the clear; a plain request to the port gets nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_served_under_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write(folder.path(), "cert.pem", CERTIFICATE, 0o644);
    let key = write(folder.path(), "key.pem", KEY, 0o600);
    let tls = Some(Tls::load(&certificate, &key).unwrap());
    let server = TestServer::configured(ServerOptions { tls, ..ServerOptions::default() }).await;
    let trusted = reqwest::Certificate::from_pem(CERTIFICATE.as_bytes()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap();
    let base = format!("https://{}", server.address());

    let listed = client.get(format!("{base}/api/sessions")).bearer_auth(ADMIN_TOKEN).send().await.unwrap();
    let body = serde_json::json!({"token": ADMIN_TOKEN}).to_string();
    let login = client.post(format!("{base}/api/login")).header("content-type", "application/json");
    let login = login.header("origin", &base).body(body).send().await.unwrap();
    let plain = exchange(server.address(), b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_eq!(listed.status(), 200);
    assert_eq!(login.status(), 204);
    assert!(login.headers()["set-cookie"].to_str().unwrap().ends_with("; Secure"));
    assert!(!plain.contains("200"), "{plain}");
    server.shutdown().await;
}

/// H5.
#[test]
fn wrong_files_are_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write(folder.path(), "cert.pem", CERTIFICATE, 0o644);
    let key = write(folder.path(), "key.pem", KEY, 0o600);
    let other = write(folder.path(), "other.pem", OTHER_KEY, 0o600);
    let exposed = write(folder.path(), "exposed.pem", KEY, 0o644);
    let text = write(folder.path(), "text.pem", "nothing\n", 0o600);
    let missing = folder.path().join("missing.pem");
    let error = |certificate: &Path, key: &Path| Tls::load(certificate, key).err().unwrap().to_string();

    for (said, parts) in [
        (error(&missing, &key), ["server.tls_cert: can't read", "missing.pem"]),
        (error(&certificate, &missing), ["server.tls_key: can't read", "missing.pem"]),
        (error(&text, &key), ["server.tls_cert", "holds no certificate in PEM form"]),
        (error(&certificate, &text), ["server.tls_key", "holds no private key in PEM form"]),
        (error(&certificate, &exposed), ["exposed.pem can be read by other users (mode 644)", "chmod 600"]),
        (error(&certificate, &other), ["can't be used together", ""]),
    ] {
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("PRIVATE KEY-----"), "{said}");
    }
}
