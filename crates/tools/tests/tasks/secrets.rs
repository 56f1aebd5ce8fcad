//! C8, J8: no part of a secret shows, wherever an output is cut.

use longhaul_tools::OutputLimit;
use serde_json::json;

use crate::workplace::{SECRET, Workplace, fields, text};

/// Whether a text shows the beginning, the end or any other part of the secret that could be of use.
pub(crate) fn shows_a_part(text: &str) -> bool {
    let parts = (0..=SECRET.len() - 5).map(|at| &SECRET[at..at + 5]);
    parts.into_iter().any(|part| text.contains(part))
}

/// C8
#[tokio::test]
async fn a_result_that_is_cut_shows_no_part_of_a_secret() {
    let mut place = Workplace::new();
    // Without an end of a line the cut is anywhere.
    let command = format!("for n in $(seq 200); do printf 'x%s' {SECRET}; done");

    for bytes in 700..740 {
        place.output_limit = OutputLimit { lines: 100, bytes };
        let finished = place.make("exec", json!({"command": command})).await;

        let output = fields(&finished)["output"].as_str().unwrap().to_owned();
        assert!(!shows_a_part(&output), "{output}");
        assert!(output.contains("[redacted]"), "{output}");
        let whole = String::from_utf8(finished.whole.unwrap()).unwrap();
        assert_eq!(whole, "x[redacted]".repeat(200));
    }
}

/// C8, J8: also of what is read from the middle of a long output, and of what the keeper dropped.
#[tokio::test]
async fn a_secret_where_an_output_was_not_kept_shows_no_part() {
    for output_cap in [4096, 4097, 4103, 9001, 64 << 20] {
        for separator in ["", "\\n"] {
            let place = Workplace::with(|settings| settings.output_cap = output_cap);
            let command = format!(
                "line=$(for n in $(seq 500); do printf 'x%s{separator}' {SECRET}; done; echo .); for n in $(seq 300); do \
                 printf %s \"${{line%.}}\"; done"
            );

            let finished = place.make("exec", json!({"command": command})).await;

            let fields = fields(&finished);
            assert!(!shows_a_part(text(&fields, "output")), "{}", text(&fields, "output"));
            let whole = finished.whole.map(|whole| String::from_utf8(whole).unwrap()).unwrap_or_default();
            assert!(!shows_a_part(&whole), "{output_cap}");
        }
    }
}
