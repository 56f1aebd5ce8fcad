use super::*;

const USER: RecordFlags = RecordFlags::USER;
const TOOL: RecordFlags = RecordFlags(0);

fn scoring(streams: &[&[RecordFlags]]) -> Scoring {
    let mut records = ScoredRecords::default();
    for stream in streams {
        records.push_stream(stream.iter().map(|flags| (*flags, 10)));
    }
    Scoring::new(records)
}

/// The records that one word in one record finds, in their order.
fn found(scoring: &mut Scoring, posting: u32) -> Vec<usize> {
    scoring.add_word(&[posting]);
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

    scoring.add_word(&[4]);

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
    scoring.add_word(&[0, 1, 2, 3]);
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
    scoring.add_word(&[0, 1, 3]);
    scoring.add_word(&[1]);

    let best = |limit: usize| scoring.best(limit).into_iter().map(|(index, _)| index).collect::<Vec<_>>();

    assert_eq!(best(10), [1, 3, 0]);
    assert_eq!(best(2), [1, 3]);
    assert_eq!(best(0), [0; 0]);
}
