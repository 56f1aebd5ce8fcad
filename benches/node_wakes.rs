//! How long a wake takes from one node to another: directly over HTTP, and through the database. `scripts/bench` runs it; the figures
//! with their machine are in `docs/performance.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::model::ScriptedModel;
use longhaul_agent::{ClusterToken, Config, HttpNodeLink, RuntimeBuilder};
use longhaul_journal::{Holder, Home, Journal, WakeSignal};
use longhaul_postgres::{DatabaseAddress, NodeLink, PostgresJournal, PostgresOptions};
use longhaul_protocol::{SessionId, StreamName};
use longhaul_server::{Server, ServerOptions, TokenStore};
use longhaul_testkit::PostgresServer;
use tokio::net::TcpListener;

const WAKES: usize = 300;
/// The pause between two wakes, so that none is collected with the one before it.
const PAUSE: Duration = Duration::from_millis(15);
const LONG: Duration = Duration::from_secs(3_600);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let server = PostgresServer::durable();
    let address = DatabaseAddress::parse(&server.url(&server.create_database())).expect("an address");
    let token = ClusterToken::new(&"x".repeat(64), "the benchmark").expect("a token");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = async |name: &str, link: Option<Arc<dyn NodeLink>>, addresses: Vec<(Holder, String)>| {
        let home = Home::create(&folder.path().join(name)).expect("a home");
        let holder = process_on(name);
        let options =
            PostgresOptions { lease_expiry: LONG, link, addresses, holder, ..PostgresOptions::default() };
        Arc::new(PostgresJournal::open_with(&address, &home, options).await.expect("a journal"))
    };
    let holder = open("a", None, vec![]).await;
    let model = Arc::new(ScriptedModel::from_json("[]").expect("a script"));
    let config = Config::at(folder.path().join("a"));
    let runtime = RuntimeBuilder::new(config).model(model).journal(holder.clone()).open().await;
    let runtime = runtime.expect("a runtime");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let options = ServerOptions { cluster_token: Some(token.clone()), ..ServerOptions::default() };
    let http = Server::start(listener, runtime.clone(), TokenStore::default(), &options).expect("a server");
    let addresses = vec![(process_on("a"), format!("http://{}", http.address()))];
    let direct = open("b", Some(Arc::new(HttpNodeLink::new(token))), addresses).await;
    let by_database = open("c", None, vec![]).await;
    assert!(holder.delivers_wakes().await.expect("an answer"), "the database delivers no notifications");

    println!("{:<28} {:>9} {:>9}", "a wake to another node", "p50 ms", "p99 ms");
    for (what, visitor) in [("directly", &direct), ("NOTIFY", &by_database)] {
        let mut times = Vec::new();
        for _ in 0..WAKES {
            times.push(wake(visitor, &holder).await.as_secs_f64() * 1e3);
            tokio::time::sleep(PAUSE).await;
        }
        times.sort_by(f64::total_cmp);
        println!("{what:<28} {:>9.2} {:>9.2}", times[WAKES / 2], times[WAKES * 99 / 100]);
    }
    http.shutdown().await;
    runtime.shutdown().await.expect("the end");
}

/// The time from a wake of a stream that `holder` holds to its signal there.
async fn wake(visitor: &PostgresJournal, holder: &PostgresJournal) -> Duration {
    let stream = StreamName::session(SessionId::generate());
    holder.acquire_lease(&stream).await.expect("a lease");
    let mut wakes = holder.wake_signals().await.expect("signals");
    let begun = Instant::now();
    visitor.wake_holder(&stream).await.expect("a wake");
    while wakes.next().await != WakeSignal::Stream(stream.clone()) {}
    begun.elapsed()
}

/// A process of another machine.
fn process_on(machine: &str) -> Holder {
    Holder { host: machine.to_owned(), boot: format!("boot of {machine}"), ..Holder::this_process() }
}
