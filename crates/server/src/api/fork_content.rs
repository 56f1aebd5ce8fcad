//! The input before which a session is forked, to be changed and sent to the fork.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_journal::{Journal, record_at, records};
use longhaul_protocol::{InputTaken, Record, Seq, SessionId, StreamName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ApiResult;

/// Records after the fork point in which the next input is looked for.
const MAX_LOOK_AHEAD: Seq = 64;

/// What a person said to the session, in the form of an input.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForkContent {
    /// The record of the input.
    seq: u64,
    text: String,
    images: Vec<ForkedImage>,
    /// Images that are no longer there.
    lost_images: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ForkedImage {
    /// Such as `image/png`.
    media_type: String,
    /// The file, in base64.
    data: String,
}

impl ForkContent {
    /// The input with this record; without one, the first input after the fork point. None if there is none.
    pub(super) async fn find(
        journal: &dyn Journal,
        session: SessionId,
        input: Option<Seq>,
        at: Option<Seq>,
    ) -> ApiResult<Option<Self>> {
        let stream = StreamName::session(session);
        let record = match (input, at) {
            (Some(seq), _) => record_at(journal, &stream, seq).await?.filter(is_input),
            (None, Some(at)) => {
                let mut cursor = records(journal, &stream, at + 1).through(at.saturating_add(MAX_LOOK_AHEAD));
                loop {
                    match cursor.next_undamaged().await? {
                        Some(record) if !is_input(&record) => {}
                        found => break found,
                    }
                }
            }
            (None, None) => None,
        };
        let Some((seq, taken)) =
            record.and_then(|record| Some((record.seq, record.decode::<InputTaken>().ok()?)))
        else {
            return Ok(None);
        };
        let mut images = Vec::new();
        for image in &taken.images {
            // An erased image is gone.
            if let Ok(bytes) = journal.blob(image.data.hash).await {
                images.push(ForkedImage { media_type: image.data.media.clone(), data: BASE64.encode(bytes) });
            }
        }
        let lost_images = taken.images.len() - images.len();
        Ok(Some(Self { seq, text: taken.text, images, lost_images }))
    }
}

fn is_input(record: &Record) -> bool {
    record.kind == "input_taken"
}
