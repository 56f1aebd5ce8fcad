use super::*;

#[test]
fn text_stays_and_sequences_go_wherever_the_chunks_end() {
    let printed = "a\x1b[24;1Hb\x1b[1;31mred\x1b[0m\x1b]0;title\x07c\x1b(Bd\x1b]8;;x\x1b\\e\n".as_bytes();

    for cut in 0..printed.len() {
        let mut filter = EscapeFilter::default();
        let mut text = filter.push(&printed[..cut]);
        text.extend(filter.push(&printed[cut..]));

        assert_eq!(String::from_utf8_lossy(&text), "abredcde\n", "cut at {cut}");
    }
}
