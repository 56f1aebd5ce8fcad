//! What the tests of model calls have in common: a config that names a model, and a wire that does what a script says.

use std::sync::Arc;

use longhaul_agent::{Config, RetryMode, Runtime, RuntimeBuilder};
use longhaul_model::Protocol;
use longhaul_protocol::{Record, SessionRecord};
use longhaul_testkit::TestHome;
use longhaul_testkit::wire::{MemoryTransport, Script};

pub(crate) const PROTOCOLS: [Protocol; 4] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

/// A config for a model of this protocol, with waits that a test can wait for.
pub(crate) fn config(place: &TestHome, protocol: Protocol) -> Config {
    let mut config = place.config();
    config.settings.model.name = "custom/m".to_owned();
    config.settings.model.base_url = Some("https://model.test/v1".to_owned());
    config.settings.model.protocol = Some(protocol);
    config.settings.model.context_window = Some(100_000);
    config.settings.retry.base_ms = 1;
    config.settings.retry.cap_ms = 2;
    config.retry_mode = RetryMode::OneShot;
    config
}

/// A runtime of this config, and the wire that its models are behind.
pub(crate) async fn open(config: Config, script: Script) -> (Runtime, Arc<MemoryTransport>) {
    let wire = Arc::new(MemoryTransport::new(script));
    (RuntimeBuilder::new(config).transport(wire.clone()).open().await.unwrap(), wire)
}

/// What the records say.
pub(crate) fn facts(records: &[Record]) -> Vec<SessionRecord> {
    records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect()
}
