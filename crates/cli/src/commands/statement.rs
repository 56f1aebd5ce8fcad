//! `longhaul statement`: what was spent, and on what.

use longhaul_agent::{Statement, StatementItem, StatementQuery, statement, statement_since};
use longhaul_journal::Journal as _;
use longhaul_transcript::format_money;

use crate::args::{GlobalArgs, StatementOptions};
use crate::commands::models::price_source;
use crate::output::{format_count, format_number, print};
use crate::{bad_usage, exit};

pub(crate) async fn run(globals: &GlobalArgs, options: StatementOptions) -> anyhow::Result<u8> {
    let since = match &options.since {
        Some(text) => Some(statement_since(text).ok_or_else(|| {
            bad_usage(format!(
                "--since {text:?} is neither a day such as 2026-11-17 nor a number of days such as 7d"
            ))
        })?),
        None => None,
    };
    let query = StatementQuery { since, by: options.by.into(), ..StatementQuery::default() };
    let spent = match globals.open_journal().await? {
        Some(journal) => {
            let spent = statement(&journal, &query).await?;
            journal.close().await;
            spent
        }
        None => Statement::empty(),
    };
    print(options.json, || &spent, || lines(&spent))?;
    Ok(exit::DONE)
}

fn lines(spent: &Statement) -> Vec<String> {
    let all: Vec<&StatementItem> = spent.items.iter().chain([&spent.total]).collect();
    let names = all.iter().map(|item| item.name.chars().count()).max().unwrap_or(0);
    let header = format!(
        "{:<names$}  {:>7}  {:>12}  {:>12}  {:>10}  {:>10}",
        "", "calls", "input", "output", "cached", "cost"
    );
    let mut lines = vec![header];
    lines.extend(all.iter().map(|item| row(item, names)));
    let total = &spent.total;
    if total.calls > 0 {
        lines.push(price_source());
    }
    if total.unpriced > 0 {
        let calls = format_count(total.unpriced, "call");
        lines.push(format!("The price of {calls} is not known; add prices in providers.toml."));
    }
    if total.at_upper_bound > 0 {
        let calls = format_count(total.at_upper_bound, "call");
        lines.push(format!("{calls} counted at the upper bound, because the process died during the call."));
    }
    lines
}

fn row(item: &StatementItem, names: usize) -> String {
    let cached = match item.input {
        0 => String::new(),
        input => format!("{}%", item.cached.saturating_mul(100) / input),
    };
    let (calls, input, output) =
        (format_number(item.calls), format_number(item.input), format_number(item.output));
    let cost = item.cost.map_or_else(|| "unknown".to_owned(), format_money);
    format!("{:<names$}  {calls:>7}  {input:>12}  {output:>12}  {cached:>10}  {cost:>10}", item.name)
}
