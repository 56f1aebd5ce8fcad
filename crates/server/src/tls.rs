//! TLS from a certificate and a key in PEM files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_protocol::PrintablePath;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConfig;

/// The largest file that is read.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The certificate and the key of a server.
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<ServerConfig>);

/// Why a server can't use TLS as configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can't be read.
    #[error("{setting}: can't read {}: {reason}", path.printable())]
    Unreadable {
        /// The setting that names it.
        setting: &'static str,
        path: PathBuf,
        reason: String,
    },
    /// A file holds something else.
    #[error("{setting}: {} holds no {expected} in PEM form{}", path.printable(), detail(reason))]
    Malformed {
        /// The setting that names it.
        setting: &'static str,
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong with it, if that is known.
        reason: String,
    },
    /// Other users can read the key.
    #[error("server.tls_key: {} can be read by other users (mode {mode:03o}); run `chmod 600` on it", path.printable())]
    ExposedKey { path: PathBuf, mode: u32 },
    /// The two don't belong together, or can't be used.
    #[error("server.tls_cert and server.tls_key can't be used together: {reason}")]
    Unusable { reason: String },
}

fn detail(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

impl Tls {
    /// Reads the certificate chain and the key.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (pem, _) = read(certificate, "server.tls_cert")?;
        let malformed = |reason: String| TlsError::Malformed {
            setting: "server.tls_cert",
            path: certificate.to_owned(),
            expected: "certificate",
            reason,
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let chain = chain.map_err(|error| malformed(error.to_string()))?;
        if chain.is_empty() {
            return Err(malformed(String::new()));
        }
        let (pem, mode) = read(key, "server.tls_key")?;
        // A group that may read keys is usual on servers.
        if mode & 0o007 != 0 {
            return Err(TlsError::ExposedKey { path: key.to_owned(), mode: mode & 0o777 });
        }
        // The parser's error could quote the key, so it is not repeated.
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| TlsError::Malformed {
            setting: "server.tls_key",
            path: key.to_owned(),
            expected: "private key",
            reason: String::new(),
        })?;
        let unusable = |error: rustls::Error| TlsError::Unusable { reason: error.to_string() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// The content and the mode of a file.
fn read(path: &Path, setting: &'static str) -> Result<(Vec<u8>, u32), TlsError> {
    let mut bytes = Vec::new();
    let mut content = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode();
        file.take(MAX_PEM_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(mode)
    };
    match content() {
        Ok(mode) => Ok((bytes, mode)),
        Err(error) => Err(TlsError::Unreadable { setting, path: path.to_owned(), reason: error.to_string() }),
    }
}
