use proptest::prelude::*;

use super::*;

const USER: RecordFlags = RecordFlags::USER;
const TOOL: RecordFlags = RecordFlags(0);

fn scoring_of(streams: &[Vec<(RecordFlags, u16)>]) -> Scoring {
    let mut end = 0;
    let ranges: Vec<Range<usize>> = streams
        .iter()
        .map(|stream| {
            let range = end..end + stream.len();
            end = range.end;
            range
        })
        .collect();
    let mut records = ScoredRecords::blank(ranges.iter().cloned());
    for (range, stream) in ranges.into_iter().zip(streams) {
        records.fill(range, stream.iter().copied());
    }
    Scoring::new(records)
}

fn scoring(streams: &[&[RecordFlags]]) -> Scoring {
    let with_length = |stream: &&[RecordFlags]| stream.iter().map(|flags| (*flags, 10)).collect();
    scoring_of(&streams.iter().map(with_length).collect::<Vec<_>>())
}

fn having(scoring: &Scoring, records: impl IntoIterator<Item = usize>) -> RecordSet {
    let mut having = RecordSet::new(scoring.records.len());
    records.into_iter().for_each(|record| having.insert_bits(record, &[1]));
    having
}

fn add_word(scoring: &mut Scoring, records: impl IntoIterator<Item = usize>) {
    let having = having(scoring, records);
    scoring.add_word(&having);
}

/// The records that one word in one record finds, in their order.
fn found(scoring: &mut Scoring, posting: usize) -> Vec<usize> {
    add_word(scoring, [posting]);
    let mut found: Vec<usize> = scoring.best(100).into_iter().map(|(index, _)| index).collect();
    found.sort_unstable();
    found
}

/// Y11
#[test]
fn a_word_counts_for_two_utterances_before_it_and_five_after_it() {
    let mut scoring = scoring(&[&[USER; 12]]);

    assert_eq!(found(&mut scoring, 4), [2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn the_score_is_as_the_formula_says() {
    let mut scoring = scoring(&[&[USER; 12]]);

    add_word(&mut scoring, [4]);

    let idf = (11.5f64 / 1.5).ln();
    let roots = |shares: &[f64]| shares.iter().map(|share| share.sqrt()).sum::<f64>();
    let earlier = [0.6, 0.4, 0.3, 0.2, 0.1];
    let length = |index: usize| {
        let later = [0.5, 0.3];
        10.0 * (1.0 + roots(&earlier[..index.min(5)]) + roots(&later[..(11 - index).min(2)]))
    };
    let mean = (0..12).map(length).sum::<f64>() / 12.0;
    let expected = |index: usize, frequency: f64| {
        idf * 2.2 * frequency / (frequency + 1.2 * (0.5 + 0.5 * length(index) / mean))
    };
    for (index, frequency) in [(4, 1.0), (3, 0.5), (2, 0.3), (5, 0.6), (6, 0.4), (9, 0.1)] {
        let score = f64::from(scoring.scores[index]);
        assert!((score - expected(index, frequency)).abs() < 1e-4, "{index}: {score}");
    }
}

#[test]
fn tool_output_gets_words_and_gives_none() {
    let streams: [&[RecordFlags]; 1] = [&[USER, TOOL, TOOL, USER, USER]];

    assert_eq!(found(&mut scoring(&streams), 0), [0, 1, 2, 3, 4]);
    assert_eq!(found(&mut scoring(&streams), 1), [1]);
}

/// Y12
#[test]
fn another_stream_is_no_neighbour() {
    let streams: [&[RecordFlags]; 3] = [&[USER; 3], &[USER; 2], &[USER; 3]];

    assert_eq!(found(&mut scoring(&streams), 3), [3, 4]);
    assert_eq!(found(&mut scoring(&streams), 4), [3, 4]);
}

/// J10
#[test]
fn an_erased_record_is_not_found_by_its_neighbours() {
    let mut scoring = scoring(&[&[USER, RecordFlags::ERASED, USER]]);

    assert_eq!(found(&mut scoring, 0), [0, 2]);
}

#[test]
fn hints_favour_what_they_fit() {
    let flags =
        [USER, USER.with(RecordFlags::ONLY_ASKS), USER.with(RecordFlags::NAMES_TIME), RecordFlags::ASSISTANT];
    let streams: Vec<&[RecordFlags]> = flags.iter().map(std::slice::from_ref).collect();
    let mut scoring = scoring(&streams);
    add_word(&mut scoring, 0..4);
    let before = scoring.scores.clone();

    let speakers = [(3..4, RecordFlags::ASSISTANT), (0..1, RecordFlags::ASSISTANT)];
    scoring.apply_hints(&ScoringHints {
        asks_when: true,
        speakers: &speakers,
        nearness: &[1.0, 0.0, 0.0, 0.3],
    });

    let ratios: Vec<f32> = scoring.scores.iter().zip(before).map(|(after, before)| after / before).collect();
    for (ratio, expected) in ratios.iter().zip([5.0, 0.9, 1.6, 1.5 * 2.2]) {
        assert!((ratio - expected).abs() < 1e-4, "{ratios:?}");
    }
}

#[test]
fn the_best_come_first_and_the_later_of_two_equals() {
    let streams: Vec<&[RecordFlags]> = vec![&[TOOL]; 5];
    let mut scoring = scoring(&streams);
    add_word(&mut scoring, [0, 1, 3]);
    add_word(&mut scoring, [1]);

    let best = |limit: usize| scoring.best(limit).into_iter().map(|(index, _)| index).collect::<Vec<_>>();

    assert_eq!(best(10), [1, 3, 0]);
    assert_eq!(best(2), [1, 3]);
    assert_eq!(best(0), [0; 0]);
}

/// A record for the formula as it is written: its flags, its length, and which of the words it has.
type PlainRecord = (RecordFlags, u16, Vec<bool>);

/// The shares of the other utterances of a stream in a record.
fn shares(stream: &[PlainRecord], record: usize) -> Vec<(usize, f64)> {
    let speaks = |index: &usize| stream[*index].0.has(RecordFlags::SPEECH);
    let earlier = (0..record).rev().filter(speaks).zip([0.6, 0.4, 0.3, 0.2, 0.1]);
    let later = (record + 1..stream.len()).filter(speaks).zip([0.5, 0.3]);
    earlier.chain(later).collect()
}

/// The score of every record, by the formula.
fn plain_scores(streams: &[Vec<PlainRecord>], words: usize) -> Vec<f64> {
    let records =
        || streams.iter().flat_map(|stream| (0..stream.len()).map(move |record| (stream.as_slice(), record)));
    let length = |(stream, record): (&[PlainRecord], usize)| {
        let own = f64::from(stream[record].1);
        own + shares(stream, record)
            .iter()
            .map(|(other, share)| share.sqrt() * f64::from(stream[*other].1))
            .sum::<f64>()
    };
    let there = || records().filter(|(stream, record)| !stream[*record].0.has(RecordFlags::ERASED));
    let all = there().count() as f64;
    let mean = (there().map(length).sum::<f64>() / all.max(1.0)).max(1.0);
    let score = |(stream, record): (&[PlainRecord], usize)| {
        let word_score = |word: usize| {
            let with = records().filter(|(stream, record)| stream[*record].2[word]).count() as f64;
            let idf = ((all - with + 0.5) / (with + 0.5)).ln().max(0.5);
            let has = |index: usize| f64::from(u8::from(stream[index].2[word]));
            let others = shares(stream, record).iter().map(|(other, share)| share * has(*other)).sum::<f64>();
            let tf = has(record) + others;
            idf * 2.2 * tf / (tf + 1.2 * (0.5 + 0.5 * length((stream, record)) / mean))
        };
        (0..words).map(word_score).sum()
    };
    records().map(score).collect()
}

const WORDS: usize = 3;

fn plain_record() -> impl Strategy<Value = PlainRecord> {
    let flags = prop_oneof![
        Just(RecordFlags::USER),
        Just(RecordFlags::ASSISTANT),
        Just(TOOL),
        Just(RecordFlags::ERASED)
    ];
    (flags, 0..60_u16, proptest::collection::vec(any::<bool>(), WORDS)).prop_map(|(flags, length, words)| {
        let is_erased = flags == RecordFlags::ERASED;
        let words = words.into_iter().map(|has| has && !is_erased).collect();
        (flags, if is_erased { 0 } else { length }, words)
    })
}

proptest! {
    /// Y11: the one pass over the postings ranks as the formula does, record by record.
    #[test]
    fn the_ranking_is_that_of_the_plain_formula(
        streams in proptest::collection::vec(proptest::collection::vec(plain_record(), 1..40), 1..5),
        limit in 1_usize..30,
    ) {
        let described = |stream: &Vec<PlainRecord>| stream.iter().map(|(flags, length, _)| (*flags, *length)).collect();
        let mut scoring = scoring_of(&streams.iter().map(described).collect::<Vec<_>>());
        let records: Vec<&PlainRecord> = streams.iter().flatten().collect();
        for word in 0..WORDS {
            add_word(&mut scoring, (0..records.len()).filter(|record| records[*record].2[word]));
        }
        let plain = plain_scores(&streams, WORDS);

        let best = scoring.best(limit);

        for (record, score) in &best {
            prop_assert!((f64::from(*score) - plain[*record]).abs() < 1e-3, "{record}: {score}, {}", plain[*record]);
        }
        let mut ranked: Vec<f64> = (0..records.len())
            .filter(|record| !records[*record].0.has(RecordFlags::ERASED) && plain[*record] > 0.0)
            .map(|record| plain[record])
            .collect();
        ranked.sort_by(|one, other| other.total_cmp(one));
        ranked.truncate(limit);
        prop_assert_eq!(best.len(), ranked.len());
        for ((_, score), expected) in best.iter().zip(ranked) {
            prop_assert!((f64::from(*score) - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn bits_are_inserted_where_they_belong(from in 0_usize..400, bits in proptest::collection::vec(any::<u64>(), 0..5)) {
        let mut records = RecordSet::new(500);

        records.insert_bits(from, &bits);

        let expected: Vec<usize> = (0..bits.len() * 64)
            .filter(|bit| bits[bit / 64] >> (bit % 64) & 1 == 1)
            .map(|bit| from + bit)
            .filter(|record| *record < 500)
            .collect();
        prop_assert_eq!(records.len(), expected.len());
        prop_assert_eq!(records.iter().collect::<Vec<_>>(), expected);
    }
}
