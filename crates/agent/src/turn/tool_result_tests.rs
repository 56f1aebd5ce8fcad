use super::*;

/// C8: 2,000 lines and 32 KiB, or a twentieth of the window, whatever is less.
#[test]
fn one_result_takes_a_twentieth_of_a_small_window() {
    let usual = OutputLimit::default();

    assert_eq!(output_cap(None), usual);
    assert_eq!(output_cap(Some(1_000_000)), usual);
    assert_eq!(output_cap(Some(8_192)), OutputLimit { bytes: 8_192 * 4 / 20, ..usual });
}
