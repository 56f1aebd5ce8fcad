use longhaul_journal::{Journal, Result, import_mark, records};
use longhaul_memory::{
    SpeakerEvidence, Utterance, UtteranceReader, Vocabulary, attribute_speaker, find_quotation,
    untrusted_recalls,
};
use longhaul_protocol::{Record, Seq, SessionId, Speaker, StreamName};

/// Records are read in steps of this many, the newest first.
const STEP: u64 = 256;
const MOST: u64 = 8_192;

/// The last turns of a session.
#[derive(Debug, Default)]
pub(super) struct RecentTurns {
    /// The first of their records.
    pub(super) from: Seq,
    /// The messages and tool outputs in them.
    pub(super) utterances: Vec<Utterance>,
    /// The vocabulary of recalled text that no user has confirmed.
    pub(super) recalled: Vec<Vocabulary>,
}

impl RecentTurns {
    /// Reads the open turn and the `before` turns before it.
    pub(super) async fn turns(journal: &dyn Journal, session: SessionId, before: usize) -> Result<Self> {
        let stream = StreamName::session(session);
        let head = journal.head(&stream).await?.seq;
        let mut pages: Vec<Vec<Record>> = Vec::new();
        let (mut ends, mut end) = (0, head);
        while end > 0 && head - end < MOST && ends <= before {
            let begin = end.saturating_sub(STEP);
            let mut page = read(journal, &stream, begin + 1, end).await?;
            end = begin;
            for index in (0..page.len()).rev() {
                ends += usize::from(matches!(page[index].kind.as_str(), "turn_ended" | "imported"));
                if ends > before {
                    end = page[index].seq;
                    page.drain(..=index);
                    break;
                }
            }
            pages.push(page);
        }
        let foreign_through = import_mark(journal, session).await?.foreign_through;
        let mut listening = UtteranceReader::to_session(foreign_through);
        let records = pages.iter().rev().flatten();
        let recalled = records.clone().flat_map(untrusted_recalls).collect();
        let utterances = records.flat_map(|record| listening.push(record)).collect();
        Ok(Self { from: end + 1, utterances, recalled })
    }

    /// The user's words that support a text, verbatim.
    pub(super) fn quotation_for(&self, text: &str) -> Option<String> {
        let by_user = self.utterances.iter().filter(|utterance| utterance.speaker == Speaker::User);
        find_quotation(text, by_user.map(Utterance::whole))
    }

    /// Whose words a text consists of, whatever the model claims.
    pub(super) fn speaker_of(&self, text: &str) -> Speaker {
        let by =
            |speaker: Speaker| self.utterances.iter().filter(move |utterance| utterance.speaker == speaker);
        let own: Vec<String> = by(Speaker::User).map(Utterance::own).collect();
        let user = Vocabulary::of(own.iter().map(String::as_str));
        let assistant = Vocabulary::of(by(Speaker::Assistant).map(|utterance| utterance.text.as_str()));
        let shown = by(Speaker::Untrusted).map(|utterance| Vocabulary::of([utterance.whole()]));
        let pasted = by(Speaker::User).filter_map(Utterance::pasted);
        let pasted = pasted.map(|pasted| Vocabulary::of([pasted.as_str()]));
        let untrusted: Vec<Vocabulary> = shown.chain(pasted).chain(self.recalled.iter().cloned()).collect();
        let grounds = SpeakerEvidence {
            weakest: Speaker::User,
            said: &user,
            assistant: &assistant,
            untrusted: &untrusted,
        };
        attribute_speaker(text, &grounds)
    }
}

/// Consecutive records, without unreadable ones.
async fn read(journal: &dyn Journal, stream: &StreamName, from: Seq, to: Seq) -> Result<Vec<Record>> {
    let (mut found, mut cursor) = (Vec::new(), records(journal, stream, from).through(to));
    while let Some(record) = cursor.next_undamaged().await? {
        found.push(record);
    }
    Ok(found)
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
