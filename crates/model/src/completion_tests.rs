use std::collections::VecDeque;

use async_trait::async_trait;

use super::*;
use crate::{AnswerPart, AnswerStream, CallPermit, Prices, StopReason, TokenCounts};

struct Counted(TokenCounts);

struct Parts(VecDeque<AnswerPart>);

#[async_trait]
impl Model for Counted {
    fn name(&self) -> &str {
        "here/model"
    }

    async fn ask(&self, _: Request, _permit: &CallPermit) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let end = AnswerPart::End(StopReason::new(StopKind::Finished, "stop"));
        Ok(Box::new(Parts(VecDeque::from([AnswerPart::Usage(self.0), end]))))
    }
}

#[async_trait]
impl AnswerStream for Parts {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.pop_front().expect("nothing is asked for after the end"))
    }
}

/// M15: what a summary or a job of memory wrote into the provider's cache is counted and paid for.
#[tokio::test]
async fn tokens_written_to_the_cache_are_counted_and_priced() {
    let tokens = TokenCounts { input: Some(1_000), output: Some(10), cached: Some(300), written: Some(600) };
    let prices = Prices { input: 1.0, output: 2.0, cached: Some(0.1), written: Some(1.25) };
    let facts = Capabilities { prices: Some(prices), ..Capabilities::default() };

    let heard = complete(
        &Counted(tokens),
        Request::default(),
        &facts,
        &CallPermit::unreserved(longhaul_protocol::Cause::Turn),
    )
    .await;

    let usage = heard.usage;
    assert_eq!((usage.input, usage.output), (Some(1_000), Some(10)));
    assert_eq!((usage.cached, usage.cache_written), (Some(300), Some(600)));
    let expected = (100.0 + 300.0 * 0.1 + 600.0 * 1.25 + 10.0 * 2.0) / 1e6;
    assert!((usage.cost.unwrap() - expected).abs() < 1e-12, "{:?}", usage.cost);
}
