//! `web_search` by the model's provider: another model call, in which the provider searches. Its answer and the pages that it found
//! are the result of our call, so the conversation has no parts that only one provider understands.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Arguments, SearchHit, UNTRUSTED, checked_query, definition, describe_hit};
use crate::{PreparedCall, Tool, ToolInvocation, ToolOutcome, function_tool};

/// How long a provider may search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(120);

/// What a provider's search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostedAnswer {
    /// What the provider's model says about it.
    pub text: String,
    /// The title and the address of each page.
    pub pages: Vec<(String, String)>,
}

/// Searches for a call. The error says why there is no answer.
pub type HostedSearch = Arc<
    dyn Fn(&ToolInvocation, String) -> Pin<Box<dyn Future<Output = Result<HostedAnswer, String>> + Send>>
        + Send
        + Sync,
>;

/// The tool, for a provider that searches by itself.
pub fn hosted_search_tool(search: HostedSearch) -> Arc<dyn Tool> {
    function_tool(definition(), Arc::new(search), prepare)
}

fn prepare(
    search: &Arc<HostedSearch>,
    Arguments { query }: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let query = checked_query(&query)?;
    let found = search(call, query);
    let run = move |mut stop: crate::StopSignal| async move {
        tokio::select! {
            found = found => match found {
                Ok(answer) => ToolOutcome::ok(describe(&answer)),
                Err(reason) => ToolOutcome::error(format!("the search failed: {reason}")),
            },
            () = stop.asked() => ToolOutcome::error("stopped: the turn ended before this was done"),
        }
    };
    Ok(PreparedCall::new(run).taking_up_to(SEARCH_TIMEOUT))
}

fn describe(answer: &HostedAnswer) -> String {
    let pages = answer.pages.iter().enumerate().map(|(index, (title, url))| {
        describe_hit(index, &SearchHit { title: title.clone(), url: url.clone(), snippet: String::new() })
    });
    let parts: Vec<String> = std::iter::once(answer.text.trim().to_owned()).chain(pages).collect();
    format!("{UNTRUSTED}\n\n{}", parts.join("\n").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_stands_before_its_pages_and_is_marked() {
        let page = |number: u32| (format!("Page {number}"), format!("https://example.org/{number}"));
        let answer = HostedAnswer { text: "It leaves at noon.".to_owned(), pages: vec![page(1), page(2)] };

        let text = describe(&answer);

        assert!(text.starts_with("untrusted:"), "{text}");
        assert!(
            text.ends_with(
                "It leaves at noon.\n1. Page 1\n   https://example.org/1\n2. Page 2\n   https://example.org/2"
            ),
            "{text}"
        );
    }
}
