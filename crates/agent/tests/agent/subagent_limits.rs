//! A2, B1: the limits of a tree of subagents: how many, how deep, at what cost, with which files and tools.

use std::sync::Arc;

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::{Config, Runtime, Session, StatementBy, StatementQuery, statement};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, PermissionMode, ScheduleSpec, SessionRecord, TaskStatus};
use longhaul_testkit::{RecordingModel, RoutedModel, TestHome};
use serde_json::{Value, json};

use crate::spend::priced;
use crate::subagents::{agent, call, child_records, children, scripts, turn_ends};
use crate::wire::facts;
use crate::{eventually, results, sound_records};

const CHILDREN: usize = 4;

/// Steps that cost up to a cent each, for ever as far as the test goes.
fn spender() -> Value {
    let step = |number: usize| {
        let arguments = json!({"items": [{"text": format!("step {number}"), "status": "pending"}]});
        json!({"calls": [{"name": "todo", "arguments": arguments}], "usage": {"input": 2_000, "output": 4_000}})
    };
    (0..40).map(step).collect()
}

fn spending_parent(arguments: &Value) -> Value {
    let one = json!({"name": "agent", "arguments": arguments});
    json!([{"calls": vec![one; CHILDREN], "usage": {"input": 100, "output": 10}}, {"text": "Done.", "usage": {"input": 100, "output": 10}}])
}

/// Runs a tree of subagents that would spend about a dollar, and returns what it has spent.
async fn spend_all(place: &TestHome, config: Config, arguments: &Value) -> (Session, f64) {
    let routes = [("Spend", priced(&spender())), ("go", priced(&spending_parent(arguments)))];
    let runtime = Runtime::with_model(config, Arc::new(RoutedModel::new(routes))).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let query = StatementQuery { by: StatementBy::Session, ..StatementQuery::default() };
    let spent = statement(&*journal, &query).await.unwrap().total.cost.unwrap();
    journal.close().await;
    (session, spent)
}

type SetLimit = fn(&mut Config, f64);

/// A2, B1: whichever limit it is, all subagents together stop at it, and say so.
#[tokio::test(flavor = "multi_thread")]
async fn subagents_that_would_spend_ten_times_a_limit_stop_at_it_together() {
    let most = 0.1;
    let limits: [(&str, SetLimit); 3] = [
        ("limits.cost_per_turn", |config, most| config.settings.limits.cost_per_turn = most),
        ("limits.cost_per_session", |config, most| config.settings.limits.cost_per_session = most),
        ("agents.cost_per_tree", |config, most| config.settings.agents.cost_per_tree = most),
    ];
    for (name, set) in limits {
        let place = TestHome::new();
        let mut config = place.config();
        set(&mut config, most);

        let (session, spent) = spend_all(&place, config, &json!({"prompt": "Spend."})).await;

        assert!(spent <= most && spent > most / 2.0, "{name}: {spent}");
        let records = sound_records(&place, &session).await;
        let journal = place.journal().await;
        for child in children(&records) {
            let ends = turn_ends(&child_records(&journal, child).await);
            assert_eq!(ends.iter().map(|end| end.outcome).collect::<Vec<_>>(), [Outcome::Limit], "{name}");
            assert!(ends[0].error.as_ref().unwrap().contains(name), "{name}: {:?}", ends[0].error);
        }
        journal.close().await;
    }
}

/// A2: a subagent spends at most the budget that its call gives it, also where no other limit is set.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_stops_at_its_own_budget() {
    let place = TestHome::new();

    let (session, spent) =
        spend_all(&place, place.config(), &json!({"prompt": "Spend.", "budget": 0.03})).await;

    let own = 0.000_22;
    #[allow(clippy::cast_precision_loss, reason = "four")]
    let most = 0.03 * CHILDREN as f64 + own;
    assert!(spent <= most + 1e-9 && spent > most / 2.0, "{spent}");
    let records = sound_records(&place, &session).await;
    let said = &results(&records)[0].2;
    assert!(said.starts_with("status: failed\n") && said.contains("the budget of the subagent"), "{said}");
}

/// A2, W3: what a schedule allows a run to cost holds for its subagents, too, and the run's cost has theirs.
#[tokio::test(flavor = "multi_thread")]
async fn subagents_of_a_scheduled_run_stop_at_its_cost_together() {
    let most = 0.05;
    let place = TestHome::new();
    let schedule = ScheduleSpec {
        every: Some("1h".to_owned()),
        session: Some("work".to_owned()),
        cost_per_run: most,
        ..ScheduleSpec::new("look", "go")
    };
    let mut config = place.config();
    config.settings.schedule = vec![schedule];
    let routes =
        [("Spend", priced(&spender())), ("go", priced(&spending_parent(&json!({"prompt": "Spend."}))))];
    let runtime = Runtime::with_model(config, Arc::new(RoutedModel::new(routes))).await.unwrap();
    let schedules = runtime.schedules();
    runtime.start().await.unwrap();

    schedules.run("look").await.unwrap();

    eventually("the end of the run", || async { schedules.show("look").await.unwrap().last.is_some() }).await;
    let last = schedules.show("look").await.unwrap().last.unwrap();
    let session = runtime.session("work").await.unwrap();
    runtime.shutdown().await.unwrap();
    let spent = last.cost.unwrap();
    assert!(spent <= most && spent > most / 2.0, "{spent}");
    let records = sound_records(&place, &session).await;
    let journal = place.journal().await;
    let children = children(&records);
    assert_eq!(children.len(), CHILDREN);
    for child in children {
        let ends = turn_ends(&child_records(&journal, child).await);
        assert_eq!(ends.iter().map(|end| end.outcome).collect::<Vec<_>>(), [Outcome::Limit]);
        assert!(ends[0].error.as_ref().unwrap().contains("cost_per_run"), "{:?}", ends[0].error);
    }
    journal.close().await;
}

/// A2, B1: two processes, each with a tree of subagents, stop together at the limit of the day.
#[tokio::test(flavor = "multi_thread")]
async fn trees_in_two_processes_never_pass_a_limit_together() {
    let most = 0.1;
    let place = TestHome::new();
    let mut config = place.config();
    config.settings.limits.cost_per_day = most;
    let open = || {
        let parent = spending_parent(&json!({"prompt": "Spend."}));
        let model = RoutedModel::new([("Spend", priced(&spender())), ("go", priced(&parent))]);
        Runtime::with_model(config.clone(), Arc::new(model))
    };
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    let (one, other) = (first.session("a").await.unwrap(), second.session("b").await.unwrap());

    let (ended, other_ended) = tokio::join!(one.send("go"), other.send("go"));

    ended.unwrap();
    other_ended.unwrap();
    first.shutdown().await.unwrap();
    second.shutdown().await.unwrap();
    let journal = place.journal().await;
    let spent = statement(&*journal, &StatementQuery::default()).await.unwrap().total.cost.unwrap();
    journal.close().await;
    assert!(spent <= most && spent > most / 2.0, "{spent}");
}

/// A2: subagents that start subagents for ever come to the end of their tree, are told so, and all of them end.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_grows_for_ever_ends_at_its_limits() {
    let place = TestHome::new();
    let mut config = place.config();
    let agents = &mut config.settings.agents;
    (agents.depth, agents.at_once, agents.per_tree) = (3, 4, 12);
    let one = json!({"name": "agent", "arguments": {"prompt": "Multiply."}});
    let grow = json!([{"calls": [one.clone(), one]}, "Done."]);
    let runtime = Runtime::with_model(config, scripts([("Multiply", grow)])).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("Multiply.").await.unwrap();

    runtime.shutdown().await.unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Done."));
    let journal = place.journal().await;
    let tree = longhaul_agent::list_subagents(&*journal, session.id()).await.unwrap();
    assert_eq!(tree.len(), 12, "{tree:?}");
    assert!(tree.iter().all(|child| child.status == TaskStatus::Completed && child.depth <= 3), "{tree:?}");
    let mut refusals = Vec::new();
    for child in &tree {
        let results = results(&child_records(&journal, child.id).await);
        refusals.extend(results.into_iter().filter(|(_, is_error, _)| *is_error).map(|(_, _, why)| why));
    }
    assert!(refusals.iter().any(|why| why.contains("agents.per_tree")), "{refusals:?}");
    journal.close().await;
}

/// A2: over `at_once` a call waits, over `per_tree` and `depth` it is an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_has_at_most_so_many_subagents_at_once_and_in_all() {
    let place = TestHome::new();
    let mut config = place.config();
    (config.settings.agents.at_once, config.settings.agents.per_tree) = (1, 3);
    // Each fails if another one is at work.
    let alone = "mkdir busy && sleep 0.05 && rmdir busy && echo x >> runs";
    let child = json!([call("exec", &json!({"command": alone})), "Alone."]);
    let one = json!({"name": "agent", "arguments": {"prompt": "Be alone."}});
    let parent = json!([{"calls": vec![one.clone(); 4]}, {"calls": [one]}, "Done."]);
    let runtime = Runtime::with_model(config, scripts([("alone", child), ("go", parent)])).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    assert_eq!(place.file("runs"), "x\nx\nx\n");
    let results = results(&records);
    let refused =
        results.iter().filter(|(_, is_error, content)| *is_error && content.contains("agents.per_tree"));
    assert_eq!((results.len(), refused.count()), (5, 2), "{results:?}");
}

/// A2: a subagent has no tool to start another one, unless `agents.depth` lets it; then its own limit holds.
#[tokio::test(flavor = "multi_thread")]
async fn subagents_are_nested_only_as_deep_as_the_config_says() {
    for (depth, is_offered) in [(0, [false, false]), (1, [true, false]), (2, [true, true])] {
        let place = TestHome::new();
        let mut config = place.config();
        config.settings.agents.depth = depth;
        let leaf = json!(["Leaf."]);
        let middle = json!([agent(&json!({"prompt": "Be a leaf."})), "Middle."]);
        let parent = json!([agent(&json!({"prompt": "Be in the middle."})), "Top."]);
        let model = scripts([("leaf", leaf), ("middle", middle), ("go", parent)]);
        let runtime = Runtime::with_model(config, model.clone()).await.unwrap();
        let session = runtime.session("a").await.unwrap();

        session.send("go").await.unwrap();

        runtime.shutdown().await.unwrap();
        let has_agent = |words: &str| {
            let requests = model.requests();
            let request = requests.iter().find(|request| crate::heard(&request.items)[0].contains(words));
            request.is_some_and(|request| request.tools.iter().any(|tool| tool.name == "agent"))
        };
        assert_eq!([has_agent("go"), has_agent("middle")], is_offered, "depth {depth}");
        let leaves = model
            .requests()
            .iter()
            .filter(|request| crate::heard(&request.items)[0].contains("leaf"))
            .count();
        assert_eq!(leaves, usize::from(depth == 2), "depth {depth}");
        sound_records(&place, &session).await;
    }
}

/// A2: its files are those of its scope, its tools those of its kind, and its permission mode is at most its parent's.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_may_do_at_most_what_its_parent_lets_it_do() {
    let place = TestHome::new();
    let agents = place.home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let kind = "---\nname: reader\ndescription: reads\ntools: Read, Write\n---\nYou only read.\n";
    std::fs::write(agents.join("reader.md"), kind).unwrap();
    std::fs::create_dir(place.work().join("docs")).unwrap();
    std::fs::write(place.work().join("docs/a.txt"), "inside\n").unwrap();
    std::fs::write(place.work().join("b.txt"), "outside\n").unwrap();
    let child = json!([
        call("read_file", &json!({"path": "docs/a.txt"})),
        call("read_file", &json!({"path": "b.txt"})),
        call("write_file", &json!({"path": "docs/a.txt", "content": "changed\n"})),
        call("exec", &json!({"command": "cat b.txt"})),
        "Read.",
    ]);
    let parent = json!([
        agent(&json!({"prompt": "Read it.", "kind": "reader", "scope": [{"target": "docs"}]})),
        "Done.",
    ]);
    let model = scripts([("Read it", child), ("go", parent)]);
    let runtime = Runtime::with_model(place.config(), model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let journal = place.journal().await;
    let of_child = results(&child_records(&journal, children(&records)[0]).await);
    let errors: Vec<bool> = of_child.iter().map(|(_, is_error, _)| *is_error).collect();
    assert_eq!(errors, [false, true, true, true], "{of_child:?}");
    assert_eq!(place.file("docs/a.txt"), "inside\n");
    let requests = model.requests();
    let of_child =
        requests.iter().find(|request| crate::heard(&request.items)[0].contains("Read it")).unwrap();
    let names: Vec<&str> = of_child.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["read_file", "write_file"]);
    assert!(of_child.system.contains("You only read.") && of_child.system.contains("You are a subagent"));
    journal.close().await;
}

/// A2, P4: in a session that asks before edits, its subagents ask, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_has_the_permission_mode_of_its_parent() {
    let place = TestHome::new();
    let child = json!([call("write_file", &json!({"path": "a.txt", "content": "x"})), "Wrote."]);
    let parent = json!([agent(&json!({"prompt": "Write it."})), "Done."]);
    let runtime =
        Runtime::with_model(place.config(), scripts([("Write", child), ("go", parent)])).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.set_permission_mode(PermissionMode::Ask).await.unwrap();

    let sending = crate::sends(&session, "go");
    eventually("the question", || async { !session.state().await.unwrap().questions.is_empty() }).await;

    assert!(!place.work().join("a.txt").exists());
    session.cancel().await.unwrap();
    sending.await.unwrap().unwrap();
    assert_eq!(session.state().await.unwrap().questions, []);
    assert!(!place.work().join("a.txt").exists());
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let asked = facts(&records).into_iter().filter(|fact| matches!(fact, SessionRecord::Question(_))).count();
    assert_eq!(asked, 1);
}

/// A2, P4: a rule that denies the tool keeps subagents from starting.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_can_deny_subagents() {
    let place = TestHome::new();
    let mut config = place.config();
    let rule = ApprovalRule { tool: "agent".to_owned(), command: None, host: None, action: Approval::Deny };
    config.settings.approval.rule = vec![rule];
    let model = RecordingModel::new(crate::script(&json!([agent(&json!({"prompt": "x"})), "Done."])));
    let runtime = Runtime::with_model(config, model).await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    assert!(results(&records)[0].1);
    assert_eq!(children(&records), []);
}
