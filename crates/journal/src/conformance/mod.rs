//! What any engine must promise. Nothing here knows which engine it talks to: an engine gives a place, the suite
//! opens journals there, several at a time as several processes would, and checks every promise through the trait.
//!
//! Only tests use this, with the feature `conformance`. [`conformance_tests!`](crate::conformance_tests) makes a test of
//! each function.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a test that can't go on should stop, and the name of a test says what it checks"
)]

mod append;
mod bodies;
mod leases;
mod lifecycle;
mod search;
mod sessions;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::{Append, Journal, records};
use longhaul_protocol::{NewRecord, Note, Record, SessionId, SessionRecord, StreamName};

pub use append::*;
pub use bodies::*;
pub use leases::*;
pub use lifecycle::*;
pub use search::*;
pub use sessions::*;

/// How long a lease stands where its expiry is the point.
pub const LEASE_EXPIRY: Duration = Duration::from_millis(1_500);

/// A place where an engine keeps a journal. Each call opens it anew, as another process would.
pub trait Place: Send + Sync {
    /// With leases that outlast any test.
    fn open(&self) -> impl Future<Output = Arc<dyn Journal>> + Send;

    /// With leases that expire after [`LEASE_EXPIRY`].
    fn open_expiring(&self) -> impl Future<Output = Arc<dyn Journal>> + Send;
}

/// A stream that no other test uses.
fn a_stream() -> StreamName {
    StreamName::session(SessionId::generate())
}

fn note(text: &str) -> NewRecord {
    SessionRecord::Note(Note::new(text)).encode()
}

/// Appends notes with these texts, one append each.
pub async fn append_notes(journal: &dyn Journal, stream: &StreamName, texts: &[&str]) {
    for text in texts {
        journal.append(Append::to(stream).record(note(text))).await.unwrap();
    }
}

/// Every record of a stream, page by page.
pub async fn read_all(journal: &dyn Journal, stream: &StreamName) -> Vec<Record> {
    records(journal, stream, 1).collect().await.unwrap()
}

/// The texts of the notes in a stream.
async fn texts(journal: &dyn Journal, stream: &StreamName) -> Vec<String> {
    let text = |record: &Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Note(note)) => note.text,
        other => panic!("not a note: {other:?}"),
    };
    read_all(journal, stream).await.iter().map(text).collect()
}

/// Makes a test of each promise of the suite, for the places that the expression gives. The crate needs tokio's macros.
#[macro_export]
macro_rules! conformance_tests {
    ($place:expr) => {
        $crate::conformance_tests! { @each $place;
            an_append_is_there_when_the_journal_is_opened_again
            records_are_chained
            of_two_writers_one_wins_and_the_other_learns_the_head
            an_append_is_whole_or_not_at_all
            the_same_key_twice_is_one_record
            appends_of_many_tasks_all_arrive
            a_conflict_costs_only_its_own_append
            a_read_is_bounded_by_its_page
            a_cursor_reads_page_after_page_to_the_end_or_a_bound
            a_cursor_at_the_end_finds_what_is_appended_later
            all_sessions_are_listed_once
            a_stream_that_is_not_there_is_empty
            an_unknown_kind_is_kept_byte_for_byte
            a_body_of_several_lines_is_refused
            a_removed_stream_is_gone_and_can_begin_again
            adopted_records_must_go_on_where_the_stream_ends
            a_closed_journal_refuses
            a_lease_is_exclusive_until_it_is_released
            an_expired_lease_has_a_holder_but_no_live_one
            an_expired_lease_that_nobody_took_goes_on
            a_writer_whose_lease_was_taken_over_is_fenced_however_late
            an_append_without_a_lease_is_refused_while_somebody_holds_it
            appends_and_renewals_keep_a_lease
            a_lease_of_a_removed_stream_fits_nothing
            a_lease_on_one_stream_says_nothing_about_another
            a_ring_reaches_the_holder
            a_ring_for_a_stream_that_nobody_holds_reaches_the_host
            a_closed_journal_rings_no_more
            a_caller_hears_lines_until_one_side_hangs_up
            a_lost_ring_loses_nothing
            a_blob_comes_with_the_append_that_refers_to_it
            a_record_that_refers_to_no_blob_is_refused
            a_blob_goes_with_its_last_reference
            an_erased_body_leaves_a_stub_and_a_chain_that_verifies
            an_erased_body_takes_its_search_entries_and_unshared_blobs_along
            erasing_what_is_not_there_says_so
            what_is_too_large_is_refused
            an_input_that_could_not_be_taken_is_not_accepted
            words_are_found_in_any_order_case_and_accent
            any_of_the_words_finds_and_ranks
            what_tools_show_of_the_past_is_not_found
            an_excerpt_shows_what_only_the_whole_output_has
            scripts_without_spaces_are_found
            odd_searches_are_no_error
            a_search_sees_what_was_appended_before_it
            a_search_stays_within_the_streams_that_it_names
            a_search_forgets_a_stream_that_was_removed
            a_record_is_found_by_what_was_said_around_it
            what_is_said_later_is_added_to_what_it_follows
            many_streams_are_looked_at_and_no_others
            a_rare_word_counts_more
            streams_are_found_by_all_words
            an_answer_is_found_with_its_request
            two_that_first_use_a_key_agree_on_one_session
            names_follow_their_stream
            sessions_are_listed_with_what_loading_them_needs
            the_newest_epoch_is_found
            records_of_one_kind_are_found_in_their_order
            an_input_put_twice_is_one_input
            an_export_comes_back_as_it_was
            an_imported_session_says_so_and_whose_words_it_holds
            a_file_can_not_give_the_key_of_an_import_to_another_record
            a_file_that_does_not_begin_with_the_creation_of_its_session_is_refused
            a_file_with_a_record_of_the_wrong_form_is_refused
            the_key_of_a_file_is_checked
            a_session_without_records_begins_with_its_import
            an_export_with_one_changed_byte_is_refused
            an_export_with_large_blobs_comes_back
            of_two_imports_of_one_session_at_once_one_succeeds
            a_backup_is_consistent_while_others_write
            a_session_gets_another_key_and_keeps_everything_else
            a_pin_stays_until_it_is_taken_off
            what_was_put_away_can_be_brought_back
            a_session_that_somebody_holds_is_neither_put_away_nor_deleted
            a_deleted_session_takes_its_streams_and_unshared_blobs_along
            a_deletion_that_was_cut_short_is_finished_by_the_next
            of_two_that_rename_to_one_key_one_succeeds
            a_stream_says_how_much_it_holds
        }
    };
    (@each $place:expr; $($promise:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            $crate::conformance::$promise(&$place).await;
        }
    )* };
}
