//! The ranking of records for a question, as pure functions over the postings of its words.
//!
//! A record counts for its own words and, with less weight, for those of the utterances around it: "Let us take 5433" is
//! found by the question that it answers. The formula is BM25 with a term frequency of 1 for a record's own word plus
//! the weights of the neighbours that have the word. Tool output gets the words of its neighbours but gives them none,
//! because it can be about anything.

use std::ops::Range;

use crate::question::dates::DateSpan;

/// The share of a word in the utterances one to five places earlier.
const EARLIER: [f32; 5] = [0.6, 0.4, 0.3, 0.2, 0.1];
/// The share of a word in the utterances one and two places later.
const LATER: [f32; 2] = [0.5, 0.3];
/// How fast repetitions of a word lose weight (BM25).
pub const BM25_K1: f32 = 1.2;
/// How much the length of a text matters (BM25).
pub const BM25_B: f32 = 0.5;
/// The least weight of a word, however common it is.
pub(crate) const MIN_IDF: f64 = 0.5;

/// For records of the speaker whom the question names.
const NAMED_SPEAKER: f32 = 1.5;
/// For records with a time, if the question asks when.
const NAMES_TIME: f32 = 1.6;
/// For records that only ask.
const ONLY_ASKS: f32 = 0.9;
/// For records of the time that the question names, times how near they are.
const NEAR_DATE: f32 = 4.0;

/// What the scoring knows about a record: a set of the constants below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordFlags(pub(crate) u8);

impl RecordFlags {
    pub(crate) const USER: Self = Self(1);
    pub(crate) const ASSISTANT: Self = Self(1 << 1);
    pub(crate) const ONLY_ASKS: Self = Self(1 << 2);
    pub(crate) const NAMES_TIME: Self = Self(1 << 3);
    /// Its words were erased from the index.
    pub(crate) const ERASED: Self = Self(1 << 4);
    /// What another agent wrote: the input of a subagent, a message, an answer. No person's word.
    pub(crate) const AGENT: Self = Self(1 << 5);
    /// The first record of its stream. Only in memory.
    const FIRST: Self = Self(1 << 7);
    /// A person or a model said it: it is no tool output.
    pub(crate) const SPEECH: Self = Self(Self::USER.0 | Self::ASSISTANT.0 | Self::AGENT.0);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn with_if(self, is_so: bool, other: Self) -> Self {
        if is_so { self.with(other) } else { self }
    }
}

/// The records of the searched streams, stream by stream, each with its length in words.
#[derive(Debug, Default)]
pub(crate) struct ScoredRecords {
    flags: Vec<RecordFlags>,
    lengths: Vec<u16>,
}

impl ScoredRecords {
    /// The records of streams, which follow each other. Until they are filled in, nothing is known of them.
    pub(crate) fn blank(streams: impl Iterator<Item = Range<usize>>) -> Self {
        let mut records = Self::default();
        for stream in streams {
            records.flags.resize(stream.end, RecordFlags::ERASED);
            records.lengths.resize(stream.end, 0);
            if let Some(first) = records.flags.get_mut(stream.start) {
                *first = first.with(RecordFlags::FIRST);
            }
        }
        records
    }

    /// Fills in some of them.
    pub(crate) fn fill(&mut self, range: Range<usize>, described: impl Iterator<Item = (RecordFlags, u16)>) {
        let places = self.flags[range.clone()].iter_mut().zip(&mut self.lengths[range]);
        for ((flags, length), (described, words)) in places.zip(described) {
            *flags = described.with_if(flags.has(RecordFlags::FIRST), RecordFlags::FIRST);
            *length = words;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }

    /// The length of each record with its neighbours: its own, plus theirs times the root of their share.
    fn lengths_with_neighbours(&self) -> Vec<f32> {
        let mut lengths: Vec<f32> = self.lengths.iter().map(|length| f32::from(*length)).collect();
        add_neighbour_lengths(&mut lengths, self, 0..self.len(), &EARLIER, RestartAt::Before);
        add_neighbour_lengths(&mut lengths, self, (0..self.len()).rev(), &LATER, RestartAt::After);
        lengths
    }
}

/// A set of records, one bit for each.
#[derive(Debug, Clone)]
pub(crate) struct RecordSet {
    words: Vec<u64>,
    /// How many records there are, in the set or not.
    all: usize,
}

impl RecordSet {
    /// The empty set, for this many records.
    pub(crate) fn new(all: usize) -> Self {
        Self { words: vec![0; all.div_ceil(64)], all }
    }

    /// Adds records from `from` on: one for each bit, the lowest first. Those after the last record are left out.
    pub(crate) fn insert_bits(&mut self, from: usize, bits: &[u64]) {
        let shift = from % 64;
        for (number, bits) in bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let place = from / 64 + number;
            let overflow = if shift > 0 { bits >> (64 - shift) } else { 0 };
            for (place, bits) in [(place, bits << shift), (place + 1, overflow)] {
                if let Some(word) = self.words.get_mut(place) {
                    let left = self.all - place * 64;
                    *word |= if left < 64 { bits & ((1 << left) - 1) } else { bits };
                }
            }
        }
    }

    /// Keeps those that are in both.
    pub(crate) fn retain_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The records in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        set_bits(&self.words)
    }
}

/// The numbers of the bits that are set, the lowest first.
pub(crate) fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(number, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (bit < 64).then_some(number * 64 + bit)
        })
    })
}

/// Where a stream begins in the direction of a walk: before its first record, or after it.
#[derive(Clone, Copy, PartialEq)]
enum RestartAt {
    Before,
    After,
}

/// Walks over the records and adds to each the lengths of the last utterances that the walk has passed.
fn add_neighbour_lengths<const N: usize>(
    lengths: &mut [f32],
    records: &ScoredRecords,
    order: impl Iterator<Item = usize>,
    shares: &[f32; N],
    restart: RestartAt,
) {
    let roots = shares.map(f32::sqrt);
    // The nearest utterance first.
    let mut passed = [0.0; N];
    for index in order {
        let flags = records.flags[index];
        if restart == RestartAt::Before && flags.has(RecordFlags::FIRST) {
            passed = [0.0; N];
        }
        lengths[index] += passed.iter().zip(roots).map(|(length, root)| length * root).sum::<f32>();
        if flags.has(RecordFlags::SPEECH) {
            passed.copy_within(..N - 1, 1);
            passed[0] = f32::from(records.lengths[index]);
        }
        if restart == RestartAt::After && flags.has(RecordFlags::FIRST) {
            passed = [0.0; N];
        }
    }
}

/// The scores of the records for one question.
pub(crate) struct Scoring {
    records: ScoredRecords,
    /// The divisor's part that depends on a record's length.
    norms: Vec<f32>,
    /// The term frequencies of the current word; 0 between two words.
    frequencies: Vec<f32>,
    scores: Vec<f32>,
    /// How many records can be found.
    count: usize,
}

impl Scoring {
    pub(crate) fn new(records: ScoredRecords) -> Self {
        let mut norms = records.lengths_with_neighbours();
        let there = || norms.iter().zip(&records.flags).filter(|(_, flags)| !flags.has(RecordFlags::ERASED));
        let count = there().count();
        let sum: f64 = there().map(|(length, _)| f64::from(*length)).sum();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a mean needs no more"
        )]
        let mean = (sum / count.max(1) as f64).max(1.0) as f32;
        for norm in &mut norms {
            *norm = BM25_K1 * (1.0 - BM25_B + BM25_B * *norm / mean);
        }
        let (frequencies, scores) = (vec![0.0; records.len()], vec![0.0; records.len()]);
        Self { records, norms, frequencies, scores, count }
    }

    /// The weight of a word that this many of the records have.
    pub(crate) fn weight(&self, having: usize) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a weight needs no more")]
        let (all, having) = (self.count as f64, having as f64);
        ((all - having + 0.5) / (having + 0.5)).ln().max(MIN_IDF)
    }

    /// Adds a word, which these records have.
    pub(crate) fn add_word(&mut self, having: &RecordSet) {
        #[allow(clippy::cast_possible_truncation, reason = "a weight needs no more")]
        let weight = self.weight(having.len()) as f32;
        // The records that the word counts for, as ranges that don't meet.
        let mut touched: Vec<Range<usize>> = Vec::new();
        for record in having.iter() {
            let mut range = self.spread(record);
            // An utterance can reach further back than the tool output before it.
            while let Some(last) = touched.pop_if(|last| last.end >= range.start) {
                range = last.start.min(range.start)..last.end.max(range.end);
            }
            touched.push(range);
        }
        touched.into_iter().for_each(|range| self.score_word(range, weight));
    }

    /// Turns the term frequencies of the current word into scores.
    fn score_word(&mut self, records: Range<usize>, weight: f32) {
        let frequencies = &mut self.frequencies[records.clone()];
        let scores = &mut self.scores[records.clone()];
        for ((score, frequency), norm) in scores.iter_mut().zip(&mut *frequencies).zip(&self.norms[records]) {
            *score += weight * (BM25_K1 + 1.0) * *frequency / (*frequency + norm);
        }
        frequencies.fill(0.0);
    }

    /// Counts a word for the record that has it and for the neighbours. Returns the range of these records.
    fn spread(&mut self, posting: usize) -> Range<usize> {
        self.frequencies[posting] += 1.0;
        let flags = &self.records.flags;
        if !flags[posting].has(RecordFlags::SPEECH) {
            return posting..posting + 1;
        }
        let (mut from, mut to, mut passed) = (posting, posting + 1, 0);
        while passed < EARLIER.len() && to < flags.len() && !flags[to].has(RecordFlags::FIRST) {
            self.frequencies[to] += EARLIER[passed];
            passed += usize::from(flags[to].has(RecordFlags::SPEECH));
            to += 1;
        }
        passed = 0;
        while passed < LATER.len() && !flags[from].has(RecordFlags::FIRST) {
            from -= 1;
            self.frequencies[from] += LATER[passed];
            passed += usize::from(flags[from].has(RecordFlags::SPEECH));
        }
        from..to
    }

    /// Favours what the hints of the question fit.
    pub(crate) fn apply_hints(&mut self, hints: &ScoringHints<'_>) {
        for (score, flags) in self.scores.iter_mut().zip(&self.records.flags) {
            if flags.has(RecordFlags::ONLY_ASKS) {
                *score *= ONLY_ASKS;
            }
            if hints.asks_when && flags.has(RecordFlags::NAMES_TIME) {
                *score *= NAMES_TIME;
            }
        }
        for (range, speaker) in hints.speakers {
            let scores = self.scores[range.clone()].iter_mut().zip(&self.records.flags[range.clone()]);
            scores.filter(|(_, flags)| flags.has(*speaker)).for_each(|(score, _)| *score *= NAMED_SPEAKER);
        }
        for (score, nearness) in self.scores.iter_mut().zip(hints.nearness) {
            *score *= 1.0 + NEAR_DATE * nearness;
        }
    }

    /// The best records with their scores. Among equals the later one comes first.
    pub(crate) fn best(&self, limit: usize) -> Vec<(usize, f32)> {
        let order = |(one, a): &(usize, f32), (other, b): &(usize, f32)| b.total_cmp(a).then(other.cmp(one));
        let (mut best, mut least): (Vec<(usize, f32)>, f32) = (Vec::new(), f32::MIN_POSITIVE);
        for (index, score) in self.scores.iter().enumerate() {
            if *score < least || self.records.flags[index].has(RecordFlags::ERASED) {
                continue;
            }
            best.push((index, *score));
            // Now and then the worse half goes, and with it all that would not be better.
            if best.len() > limit.saturating_mul(2) {
                best.select_nth_unstable_by(limit, order);
                least = least.max(best[limit].1);
                best.truncate(limit);
            }
        }
        best.sort_unstable_by(order);
        best.truncate(limit);
        best
    }
}

/// What a question says beside its words, for the records that are scored.
#[derive(Debug, Default)]
pub(crate) struct ScoringHints<'a> {
    pub(crate) asks_when: bool,
    /// The records of the streams in which the named person or agent speaks.
    pub(crate) speakers: &'a [(Range<usize>, RecordFlags)],
    /// How near each record is to the named date. Empty if there is none.
    pub(crate) nearness: &'a [f32],
}

/// How near a record is to a date: by the day on which it was written, or the days that it names.
pub(crate) fn nearness(date: &DateSpan, written: i32, named: Option<(i32, i32)>) -> f32 {
    if named.is_some_and(|(from, to)| date.overlaps(from, to)) {
        return 1.0;
    }
    date.nearness(written)
}

#[cfg(test)]
#[path = "scoring_tests.rs"]
mod tests;
