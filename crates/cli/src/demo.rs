//! What is built so far, to watch: a journal whose writer is killed again and again, and that loses nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use longhaul_journal::{Append, Home, Journal, ReplacingFile, SqliteJournal, name_session, resolve};
use longhaul_protocol::{Note, SessionId, SessionRecord, StreamName};

use crate::arguments::{DemoOptions, Place};
use crate::exit;
use crate::output::{count, grouped, line};

const KEY: &str = "demo:journal";
const KILLS: u32 = 3;
/// How long each writer lives: long enough to see, short enough not to bore.
const LIFE: Duration = Duration::from_millis(700);
/// How many records there must be at least, for the end of the demo.
const ENOUGH: u64 = 50;

pub(crate) async fn run(options: &DemoOptions) -> anyhow::Result<u8> {
    let folder = std::env::temp_dir().join(format!("longhaul-demo-{}", SessionId::generate()));
    let outcome = play(&folder).await;
    if options.keep {
        let home = folder.display();
        line(format!(
            "\nThe demo's home is kept. To look around:\n  longhaul --home {home} sessions list\n  longhaul --home {home} sessions show {KEY}\n  longhaul --home {home} verify"
        ))?;
    } else {
        std::fs::remove_dir_all(&folder).with_context(|| format!("{} can't be removed", folder.display()))?;
        line("\nThe demo's home is removed again (--keep leaves it, to look around).")?;
    }
    outcome
}

async fn play(folder: &Path) -> anyhow::Result<u8> {
    line("Longhaul is being built. The turn itself (a model, its tools, its commands) is not there yet.")?;
    line("What is there is the journal in which all of it will live. Nothing in this demo is scripted:")?;
    line("another process appends records as fast as it can, each one on disk before it is acknowledged;")?;
    line(format!(
        "it is killed with SIGKILL in the middle, {KILLS} times, and each time another one goes on.\n"
    ))?;
    let home = Home::create(folder)?;
    for kill in 1..=KILLS {
        let acknowledged = write_and_kill(folder)?;
        let journal = SqliteJournal::open(&home).await?;
        let head = resolve(&journal, KEY).await?.head.seq;
        let report = journal.verify().await?;
        journal.close().await;
        line(format!(
            "kill {kill}: {} acknowledged, {} there, the chain verifies",
            count(acknowledged, "record"),
            grouped(head)
        ))?;
        anyhow::ensure!(head >= acknowledged && report.is_sound(), "records were lost: {:?}", report.damage);
    }
    let (byte, finding) = flip_one_byte(&home).await?;
    line(format!(
        "\nThen one byte (at {byte}) is changed in a copy of the file, and `verify` says:\n  {finding}"
    ))?;
    Ok(exit::DONE)
}

/// Starts a writer, lets it live for a moment and kills it. Returns the last record that it acknowledged.
fn write_and_kill(folder: &Path) -> anyhow::Result<u64> {
    let mut writer = Command::new(std::env::current_exe()?)
        .arg("--home")
        .arg(folder)
        .arg("demo-writer")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("the demo's writer can't be started")?;
    let lines = BufReader::new(writer.stdout.take().context("the writer has an output")?).lines();
    let (since, mut last) = (Instant::now(), None);
    for line in lines.map_while(Result::ok) {
        last = line.parse().ok().or(last);
        // On a slow disk it may take longer to get far enough.
        if since.elapsed() > LIFE && last >= Some(ENOUGH) {
            writer.kill()?;
        }
    }
    writer.wait()?;
    last.context("the demo's writer acknowledged nothing")
}

/// The other process: appends until it is killed.
pub(crate) async fn write(place: &Place) -> anyhow::Result<u8> {
    let journal = place.journal_or_new().await?;
    let stream = StreamName::session(name_session(&journal, KEY).await?);
    let lease = journal.acquire(&stream).await?;
    let mut head = journal.head(&stream).await?.seq;
    loop {
        let text = format!("record {} of a writer that may be killed at any moment", head + 1);
        let append =
            Append::under(&lease).expecting(head).record(SessionRecord::Note(Note { text }).encode());
        head = journal.append(append).await?.last().map_or(head, |record| record.seq);
        line(head)?;
    }
}

/// Changes one byte of a record in a copy of the journal. Returns where, and what verifying finds.
async fn flip_one_byte(home: &Home) -> anyhow::Result<(usize, String)> {
    let copy = Home::create(&home.folder().join("damaged-copy"))?;
    let mut bytes = std::fs::read(home.journal_file())?;
    let words = b"record 42 of a writer";
    let place =
        bytes.windows(words.len()).position(|window| window == words).context("record 42 is in the file")?;
    bytes[place] ^= 1;
    let mut file = ReplacingFile::create(&copy.journal_file())?;
    file.write_all(&bytes)?;
    file.finish()?;
    let journal = SqliteJournal::open(&copy).await?;
    let report = journal.verify().await?;
    journal.close().await;
    let finding = report.damage.first().context("the damage was not found")?;
    Ok((place, finding.to_string()))
}
