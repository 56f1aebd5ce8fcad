//! The models that the user can choose from.

use crate::discovery::{LOCAL_SERVER_PORTS, ServerQuery, find_local_servers, list_models};
use crate::registry::Models;

/// A model that can be used now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// `provider/model`.
    pub name: String,
    /// Where it is known from.
    pub source: String,
}

impl Models {
    /// The models of providers whose key is set, as far as the catalogue has them by name, and those that the configured
    /// server and the servers on this machine list. Takes at most a moment: a server that is slow is left out.
    pub async fn choices(&self, configured: Option<&ServerQuery<'_>>) -> Vec<ModelChoice> {
        let mut choices = Vec::new();
        if let Some(server) = configured {
            for id in list_models(self.transport(), server).await.unwrap_or_default() {
                let name = format!("{}/{id}", server.provider);
                choices.push(ModelChoice { name, source: format!("offered by {}", server.base_url) });
            }
        }
        for server in find_local_servers(self.transport(), &LOCAL_SERVER_PORTS).await {
            for id in &server.models {
                let name = format!("{}/{id}", server.provider);
                choices.push(ModelChoice { name, source: format!("offered by {}", server.base_url) });
            }
        }
        choices.extend(self.choices_by_key());
        let mut seen = std::collections::HashSet::new();
        choices.retain(|choice| seen.insert(choice.name.clone()));
        choices
    }

    fn choices_by_key(&self) -> Vec<ModelChoice> {
        let mut choices = Vec::new();
        for provider in self.providers().iter() {
            let is_set =
                |variable: &&String| std::env::var(variable).is_ok_and(|value| !value.trim().is_empty());
            let Some(variable) = provider.key_env.iter().find(is_set) else { continue };
            let source = format!("{variable} is set");
            let prefix = format!("{}/", provider.name);
            let patterns = self.catalogue().iter().flat_map(|entry| &entry.patterns);
            let known = patterns.filter(|pattern| pattern.starts_with(&prefix) && !is_wild(pattern));
            let usual = provider.usual_model.iter().map(|model| format!("{prefix}{model}"));
            for name in usual.chain(known.map(|pattern| pattern.trim_end_matches('*').to_owned())) {
                choices.push(ModelChoice { name, source: source.clone() });
            }
        }
        choices
    }
}

/// Whether a pattern stands for more than one model with different dates.
fn is_wild(pattern: &str) -> bool {
    pattern.trim_end_matches('*').contains('*') || pattern.ends_with("-20*") || pattern.ends_with("/*")
}
